#include "kernels/device/sim/sim_queue.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "kernels/device/copies.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/system/thread.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();

// The state of a device that its queues and its memory share.
struct State {
  std::mutex mutex;
  int lost = 0;  // the error that lost it, or 0
  std::string why;
  std::mutex queues_mutex;  // guards the members below
  std::set<SimQueue*> queues;
  std::condition_variable left;  // a thread no longer uses a queue

  void MakeWhole() {
    const std::lock_guard lock(mutex);
    lost = 0;
    why.clear();
  }
  // Marks the device as lost; the first error stays.
  void Lose(int error, std::string with) {
    const std::lock_guard lock(mutex);
    if (lost != 0) return;
    lost = error;
    why = std::move(with);
  }
  int LostWith() {
    const std::lock_guard lock(mutex);
    return lost;
  }
};

State& StateOf(int device) {
  static auto* const states = new std::array<State, SimMemory::kMostDevices>;
  return (*states)[static_cast<size_t>(device)];
}

// The seed of the delays of queues that will be made; 0: none.
std::atomic<uint64_t> delays_seed = 0;

// The device that this thread called last.
thread_local int asked_last = 0;

}  // namespace

// ---- The life of a queue ----

absl::StatusOr<std::unique_ptr<SimQueue>> SimQueue::Create(int device,
                                                           uint64_t seed) {
  const int number = SimMemory::kFirstDense + device;
  if (const int error = SimErrorOf("create", number); error != 0) {
    return CudaStatus("device sim", error, SimErrorText());
  }
  return std::make_unique<SimQueue>(number, seed);
}

SimQueue::SimQueue(int device, uint64_t seed)
    : device_(device), memory_(SimMemory::Get(device)) {
  State& state = StateOf(device_);
  {
    const std::lock_guard lock(state.queues_mutex);
    state.queues.insert(this);
  }
  if (seed == 0) seed = delays_seed;
  if (seed != 0) {
    worker_ = StartThread(
        [this, seed, stop = stop_.get_token()] { WorkWithDelays(seed, stop); });
  }
}

SimQueue::~SimQueue() { Finish(); }

void SimQueue::Finish() {
  stop_.request_stop();
  if (worker_.joinable()) worker_.join();
  RunToEnd();
  State& state = StateOf(device_);
  std::unique_lock lock(state.queues_mutex);
  state.queues.erase(this);
  state.left.wait(lock, [this] { return users_ == 0; });
}

void SimQueue::ForEach(int device, absl::FunctionRef<bool(SimQueue&)> is,
                       absl::FunctionRef<void(SimQueue&)> use) {
  State& state = StateOf(device);
  std::vector<SimQueue*> named;
  {
    const std::lock_guard lock(state.queues_mutex);
    for (SimQueue* queue : state.queues) {
      if (!is(*queue)) continue;
      ++queue->users_;
      named.push_back(queue);
    }
  }
  for (SimQueue* queue : named) {
    use(*queue);
    const std::lock_guard lock(state.queues_mutex);
    --queue->users_;
    state.left.notify_all();
  }
}

// ---- Calls ----

int SimQueue::ErrorOf(std::string_view call, size_t bytes) const {
  return SimErrorOf(call, device_, bytes);
}

absl::Status SimQueue::StatusOf(std::string_view who, int error) const {
  return CudaStatus(who, error, SimErrorText());
}

std::string SimQueue::TakeFault() { return std::exchange(fault_, ""); }

absl::Status SimQueue::CopyAny(void* to, const void* from, size_t bytes) {
  if (const int error = ErrorOf("copy", bytes); error != 0) {
    return StatusOf("copy", error);
  }
  SimMemory* const source = SimMemory::Holder(from);
  SimMemory* const target = SimMemory::Holder(to);
  const auto is_others = [this](const SimMemory* memory) {
    return memory != nullptr && memory != &memory_;
  };
  if (is_others(source) || is_others(target)) {
    Add({.outside = true, .copy = {{source, target, to, from, bytes}}});
    return absl::OkStatus();
  }
  const bool up = source == nullptr;
  if (!up || memory_.IsPinned(from)) {
    // Memory that is not pinned is filled now, so that reading it too early is
    // noticed. Queued work may still have to read pinned memory.
    if (!up && target == nullptr && !memory_.IsPinned(to)) {
      std::memset(to, 0xff, bytes);
    }
    Push([to, from, bytes] {
      std::memcpy(to, from, bytes);
      return 0;
    });
    return absl::OkStatus();
  }
  const auto* const first = static_cast<const std::byte*>(from);
  Push([to, sent = std::vector<std::byte>(first, first + bytes)] {
    std::memcpy(to, sent.data(), sent.size());
    return 0;
  });
  return absl::OkStatus();
}

absl::Status SimQueue::Zero(DevicePtr<void> to, size_t bytes) {
  const int error = ErrorOf("copy", bytes);
  if (error == 0) {
    Push([to, bytes] {
      std::memset(to.raw(), 0, bytes);
      return 0;
    });
  }
  return StatusOf("zero", error);
}

absl::Status SimQueue::Unpack(const std::byte* packed, const PackedRun* runs,
                              int64_t count) {
  const int error = ErrorOf("launch");
  if (error == 0) {
    Push([=] {
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(runs[i].to.raw(), packed + runs[i].at, runs[i].bytes);
      }
      return 0;
    });
  }
  return StatusOf("Unpack", error);
}

absl::Status SimQueue::CopyColumns(const ColumnsCopy& p) {
  const int error = ErrorOf("launch");
  if (error == 0) {
    Push([p] {
      for (int64_t r = 0; r < p.rows; ++r) {
        std::memcpy((p.to + r * p.to_stride).raw(),
                    (p.from + r * p.from_stride).raw(),
                    static_cast<size_t>(p.bytes));
      }
      return 0;
    });
  }
  return StatusOf("Gather", error);
}

absl::Status SimQueue::PushOp(std::function<absl::Status()> work) {
  const int error = ErrorOf("launch");
  if (error == 0) {
    Push([this, work = std::move(work)] {
      const absl::Status status = work();
      if (!status.ok()) fault_ = std::string(status.message());
      return status.ok() ? kCudaSuccess : kCudaLaunchFailure;
    });
  }
  return StatusOf("op", error);
}

absl::Status SimQueue::Synchronize() {
  RETURN_IF_ERROR(Await(kEnd));
  return memory_.Check();
}

uint64_t SimQueue::Mark() {
  if (ErrorOf("mark") != 0) return kEnd;
  const std::lock_guard lock(mutex_);
  return pushed_;
}

absl::Status SimQueue::Await(uint64_t mark) {
  // A wait that is refused does nothing.
  int error = ErrorOf("wait");
  if (error == 0) {
    RunUntil(mark);
    error = StateOf(device_).LostWith();
  }
  return StatusOf("device", error);
}

absl::Status SimQueue::Check() { return StatusOf("device", ErrorOf("check")); }

absl::Status SimQueue::Pin(std::byte* host, size_t bytes) {
  const int error = ErrorOf("pin", bytes);
  return error == 0 ? memory_.Pin(host, bytes) : StatusOf("pin", error);
}

bool SimQueue::KernelsSee(std::byte* pinned) {
  return ErrorOf("see") == 0 && memory_.IsPinned(pinned);
}

// ---- The queued work ----

void SimQueue::Push(std::function<int()> work, bool outside) {
  Add({.run = std::move(work), .outside = outside});
}

void SimQueue::Add(Work work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  ++pushed_;
  pushes_.notify_all();
}

void SimQueue::RunToEnd() { RunUntil(kEnd); }

void SimQueue::Forget() {
  const std::lock_guard run(run_mutex_);
  TakeUntil(kEnd);
}

// Does the copy `next` and those behind it between the same two devices, whose
// memories are opened once for all, as opening takes longer than a small copy.
// Returns the work behind them.
SimQueue::Works::const_iterator SimQueue::CopyThroughHost(
    Works::const_iterator next, Works::const_iterator end) {
  SimMemory* const source = next->copy->source;
  SimMemory* const target = next->copy->target;
  size_t bytes = 0;
  auto after = next;
  do {
    bytes += after->copy->bytes;
    ++after;
  } while (source != target && after != end && after->copy &&
           after->copy->source == source && after->copy->target == target);
  std::vector<std::byte> between(bytes);
  const auto each = [&](SimMemory* memory, auto copy) {
    const auto all = [&] {
      std::byte* at = between.data();
      for (auto work = next; work != after; ++work) {
        copy(*work->copy, at);
        at += work->copy->bytes;
      }
    };
    memory != nullptr ? memory->WhileOpen(all) : all();
  };
  each(source, [](const PeerCopy& of, std::byte* at) {
    std::memcpy(at, of.from, of.bytes);
  });
  each(target, [](const PeerCopy& of, const std::byte* at) {
    std::memcpy(of.to, at, of.bytes);
  });
  return after;
}

// The worker thread: does a little of the queue at a time.
void SimQueue::WorkWithDelays(uint64_t seed, const std::stop_token& stop) {
  constexpr uint64_t kMostMicroseconds = 200;
  constexpr uint64_t kMostAtOnce = 8;
  std::mt19937_64 random(seed);
  while (!stop.stop_requested()) {
    uint64_t done;
    {
      std::unique_lock lock(mutex_);
      if (!pushes_.wait(lock, stop, [this] { return !queue_.empty(); })) {
        return;
      }
      done = pushed_ - queue_.size();
    }
    std::this_thread::sleep_for(
        std::chrono::microseconds(random() % kMostMicroseconds));
    RunUntil(done + 1 + random() % kMostAtOnce);
  }
}

// Takes the work up to `mark` from the queue.
SimQueue::Works SimQueue::TakeUntil(uint64_t mark) {
  const std::lock_guard lock(mutex_);
  Works work;
  for (; !queue_.empty() && pushed_ - queue_.size() < mark;
       queue_.pop_front()) {
    work.push_back(std::move(queue_.front()));
  }
  return work;
}

// Does the work up to `mark`. A fault of the work loses the device, which then
// does nothing more.
void SimQueue::RunUntil(uint64_t mark) {
  const std::lock_guard run(run_mutex_);
  const Works work = TakeUntil(mark);
  State& state = StateOf(device_);
  if (work.empty() || state.LostWith() != 0) return;
  int error = 0;
  for (auto next = work.begin(); next != work.end() && error == 0;) {
    if (next->copy) {
      next = CopyThroughHost(next, work.end());
      continue;
    }
    if (next->outside) {
      error = (next++)->run();
      continue;
    }
    memory_.WhileOpen([&] {
      for (; next != work.end() && !next->outside && error == 0; ++next) {
        error = next->run();
      }
    });
  }
  if (error != 0) state.Lose(error, TakeFault());
}

void RunSimQueues(int device) {
  SimQueue::ForEach(
      device, [](const SimQueue&) { return true; },
      [](SimQueue& queue) { queue.RunToEnd(); });
}

// ---- Faults ----

int SimErrorOf(std::string_view call, int device, size_t bytes) {
  asked_last = device;
  State& state = StateOf(device);
  const std::lock_guard lock(state.mutex);
  if (state.lost != 0) return state.lost;
  const int error = FaultAt({.of = Callee::kDevice,
                             .call = call,
                             .bytes = static_cast<int64_t>(bytes),
                             .device = device});
  if (LosesDevice(error)) state.lost = error;
  return error;
}

std::string SimErrorText() {
  State& state = StateOf(asked_last);
  const std::lock_guard lock(state.mutex);
  return state.why.empty() ? "refused by a test" : state.why;
}

void SetSimDelays(uint64_t seed) { delays_seed = seed; }

void RestoreSimDevice(int device) {
  State& state = StateOf(device);
  if (state.LostWith() != 0) {
    SimQueue::ForEach(
        device, [](const SimQueue&) { return true; },
        [](SimQueue& queue) { queue.Forget(); });
  }
  state.MakeWhole();
}

void RestoreSimDevices() {
  for (int device = 0; device < SimMemory::kMostDevices; ++device) {
    RestoreSimDevice(device);
  }
}

SimFaults::SimFaults(std::function<int(std::string_view)> fault, int device) {
  RestoreSimDevices();
  faults_.emplace(Callee::kDevice, [fault = std::move(fault),
                                    device](const Operation& operation) {
    const bool is_other = device != kAllDevices && operation.device != device;
    return is_other ? 0 : fault(operation.call);
  });
}

void SimFaults::End() {
  faults_.reset();
  RestoreSimDevices();
}

int64_t SimPinnedBytes() {
  int64_t bytes = 0;
  for (int device = 0; device < SimMemory::kMostDevices; ++device) {
    bytes += SimMemory::Get(device).PinnedBytes();
  }
  return bytes;
}

}  // namespace tiercel
