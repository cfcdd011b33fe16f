#ifndef TIERCEL_OFFLOAD_RANKS_NCCL_FOR_TEST_H_
#define TIERCEL_OFFLOAD_RANKS_NCCL_FOR_TEST_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/device/cuda/nccl.h"
#include "kernels/device/executor/hosted_stream.h"
#include "kernels/device/sim/sim_memory.h"
#include "kernels/system/faults.h"

namespace tiercel {

// A library that simulates NCCL between hosted devices. Data leaves when the
// sender's queue comes to it. The receiving device waits until it has come or
// the communicator is aborted; as with the real library, a thread that waits
// for the device then waits too. Its calls and messages may fail by faults
// (Callee::kNccl). There is one instance at a time.
class FakeNccl {
 public:
  static constexpr int kRefused = 1;     // ncclUnhandledCudaError
  static constexpr int kRemoteGone = 6;  // ncclRemoteError

  FakeNccl() { own_ = this; }
  ~FakeNccl() { own_ = nullptr; }

  int version = 22809;  // set by tests, while no thread is in a call

  // ---- Read by tests ----

  int alive() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int>(communicators_.size());
  }
  int calls(std::string_view call) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = calls_.find(std::string(call));
    return found == calls_.end() ? 0 : found->second;
  }

  static NcclFunctions Functions() {
    NcclFunctions f;
    f.version = [](int* to) {
      *to = own_->version;
      return 0;
    };
    f.create_all = [](void** to, int ranks, const int* /*gpus*/) {
      return own_->CreateAll(to, ranks);
    };
    f.destroy = [](void* of) { return own_->End(of, /*abort=*/false); };
    f.abort = [](void* of) { return own_->End(of, /*abort=*/true); };
    f.async_error = [](void* of, int* error) {
      const auto communicator = own_->Of(of);
      const int refused = own_->Ask("async_error", communicator->rank);
      if (refused == 0) *error = communicator->AsyncError();
      return refused;
    };
    f.group_start = [] {
      group_.clear();
      return own_->Ask("group_start", -1);
    };
    f.group_end = [] { return own_->EndGroup(std::exchange(group_, {})); };
    f.send = [](const void* from, size_t count, int type, int peer, void* of,
                CUstream_st* queue) {
      return own_->Add(
          "send", of,
          {.from = from, .count = count, .peer = peer, .queue = queue}, type);
    };
    f.receive = [](void* to, size_t count, int type, int peer, void* of,
                   CUstream_st* queue) {
      return own_->Add("receive", of,
                       {.to = to, .count = count, .peer = peer, .queue = queue},
                       type);
    };
    f.error_text = [](int error) {
      return error == kRemoteGone ? "remote process exited"
                                  : "unhandled cuda error";
    };
    return f;
  }

 private:
  using Message = std::vector<std::byte>;

  // The state that is shared by communicators that were made together.
  struct World {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::pair<int, int>, std::deque<Message>> mail;  // from, to
    std::set<int> lost;  // the ranks for which a message was lost
  };

  struct Communicator {
    std::shared_ptr<World> world;
    int rank = 0;
    // The world's mutex guards the rest.
    bool aborted = false;
    int error = 0;
    bool ended = false;
    std::deque<CUstream_st*> to_run;
    std::thread device;  // does the queued work, as a device does

    int AsyncError() {
      const std::lock_guard<std::mutex> lock(world->mutex);
      return error;
    }
    void Run() {
      std::unique_lock<std::mutex> lock(world->mutex);
      for (;;) {
        world->changed.wait(lock, [this] { return ended || !to_run.empty(); });
        if (to_run.empty()) return;
        CUstream_st* const queue = to_run.front();
        to_run.pop_front();
        lock.unlock();
        RunHostedStream(queue);
        lock.lock();
      }
    }
  };
  using Shared = std::shared_ptr<Communicator>;

  struct Operation {
    const void* from = nullptr;  // null: this is a receive
    void* to = nullptr;
    size_t count = 0;
    int peer = 0;
    CUstream_st* queue = nullptr;
    Shared of = nullptr;
  };

  int Ask(std::string_view call, int rank) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++calls_[std::string(call)];
    }
    return FaultAt({.of = Callee::kNccl, .call = call, .device = rank});
  }

  Shared Of(void* handle) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return communicators_.at(handle);
  }

  int CreateAll(void** to, int ranks) {
    if (const int refused = Ask("create_all", -1); refused != 0) return refused;
    const auto world = std::make_shared<World>();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int rank = 0; rank < ranks; ++rank) {
      auto made = std::make_shared<Communicator>();
      made->world = world;
      made->rank = rank;
      made->device = std::thread(&Communicator::Run, made.get());
      to[rank] = made.get();
      communicators_[made.get()] = std::move(made);
    }
    return 0;
  }

  int End(void* handle, bool abort) {
    Shared ends;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = communicators_.find(handle);
      ends = std::move(found->second);
      communicators_.erase(found);
      ++calls_[abort ? "abort" : "destroy"];
    }
    {
      const std::lock_guard<std::mutex> lock(ends->world->mutex);
      ends->aborted = ends->aborted || abort;
      ends->ended = true;
    }
    ends->world->changed.notify_all();
    ends->device.join();
    return 0;
  }

  int Add(std::string_view call, void* handle, Operation operation, int type) {
    operation.of = Of(handle);
    if (type != NcclFunctions::kBytes) return 4;  // ncclInvalidArgument
    const int refused = Ask(call, operation.of->rank);
    if (refused == 0) group_.push_back(std::move(operation));
    return refused;
  }

  int EndGroup(const std::vector<Operation>& group) {
    const int refused =
        Ask("group_end", group.empty() ? -1 : group.front().of->rank);
    if (refused != 0) return refused;
    for (const bool sends : {true, false}) {
      for (const Operation& one : group) {
        if ((one.from != nullptr) != sends) continue;
        QueueHostedWork(one.queue, [this, one] {
          one.from != nullptr ? Send(one) : Receive(one);
          return 0;
        });
      }
    }
    for (const Operation& one : group) {
      {
        const std::lock_guard<std::mutex> lock(one.of->world->mutex);
        one.of->to_run.push_back(one.queue);
      }
      one.of->world->changed.notify_all();
    }
    return 0;
  }

  void Send(const Operation& one) {
    Message message(one.count);
    SimMemory::Holder(one.from)->WhileOpen(
        [&] { std::memcpy(message.data(), one.from, one.count); });
    World& world = *one.of->world;
    const int lost = FaultAt({.of = Callee::kNccl,
                              .call = "deliver",
                              .bytes = static_cast<int64_t>(one.count),
                              .device = one.of->rank,
                              .peer = one.peer});
    {
      const std::lock_guard<std::mutex> lock(world.mutex);
      if (lost != 0) {  // the receiver's communicator has an error then
        world.lost.insert(one.peer);
      } else {
        world.mail[{one.of->rank, one.peer}].push_back(std::move(message));
      }
    }
    world.changed.notify_all();
  }

  void Receive(const Operation& one) {
    World& world = *one.of->world;
    std::unique_lock<std::mutex> lock(world.mutex);
    std::deque<Message>& box = world.mail[{one.peer, one.of->rank}];
    world.changed.wait(lock, [&] {
      if (world.lost.count(one.of->rank) > 0) one.of->error = kRemoteGone;
      // A message of another size does not end the wait either.
      return one.of->aborted ||
             (!box.empty() && box.front().size() == one.count);
    });
    if (one.of->aborted) return;
    const Message message = std::move(box.front());
    box.pop_front();
    lock.unlock();
    SimMemory::Holder(one.to)->WhileOpen(
        [&] { std::memcpy(one.to, message.data(), message.size()); });
  }

  mutable std::mutex mutex_;  // guards the maps below
  std::map<void*, Shared> communicators_;
  std::map<std::string, int> calls_;

  static inline thread_local std::vector<Operation> group_;
  static inline FakeNccl* own_ = nullptr;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RANKS_NCCL_FOR_TEST_H_
