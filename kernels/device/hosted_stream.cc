#include "kernels/device/hosted_stream.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/device/hosted_memory.h"
#include "kernels/machine/cuda_error.h"
#include "kernels/machine/cuda_stream.h"
#include "kernels/machine/thread.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

class HostedStream;

// The state of a device that its streams and its memory share.
struct HostedDevice {
  std::mutex mutex;
  std::function<int(std::string_view)> fault;  // set by tests
  int lost = 0;                                // the error that lost it, or 0
  std::string why;
  std::mutex streams_mutex;  // guards the members below
  std::set<HostedStream*> streams;
  std::condition_variable left;  // a thread no longer uses a stream

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

using HostedDevices = std::array<HostedDevice, HostedMemory::kMostGpus>;
HostedDevices& Devices() {
  static HostedDevices* const devices = new HostedDevices;
  return *devices;
}
HostedDevice& DeviceOf(int gpu) { return Devices()[static_cast<size_t>(gpu)]; }

// The facts about these devices, as the machine reports them.
struct HostedFacts {
  std::mutex mutex;
  GpuFacts facts = kHostedGpu;

  static HostedFacts& Get() {
    static HostedFacts* const own = new HostedFacts;
    return *own;
  }
};

// The seed of the delays of streams that will be made; 0: none.
std::atomic<uint64_t> delays_seed = 0;

// The device that this thread called last.
thread_local int asked_last = 0;

// A queue whose work is done when a thread waits, by that thread, or by a
// worker thread of the stream.
class HostedStream final : public CudaStream {
  // Work `outside` the device runs while its memory is closed, and may wait.
  struct Work {
    std::function<int()> run;
    bool outside = false;
  };
  static constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();

 public:
  HostedStream(int gpu, Order order)
      : gpu_(gpu),
        memory_(HostedMemory::Get(gpu)),
        device_(DeviceOf(gpu)),
        handle_{HostExecutor(order), [this](std::function<int()> kernel) {
                  const int error = ErrorOf("launch");
                  if (error == 0) Push(std::move(kernel));
                  return error;
                }} {
    {
      const std::lock_guard lock(device_.streams_mutex);
      device_.streams.insert(this);
    }
    if (const uint64_t seed = delays_seed; seed != 0) {
      worker_ = StartThread([this, seed, stop = stop_.get_token()] {
        WorkWithDelays(seed, stop);
      });
    }
  }
  ~HostedStream() override {
    stop_.request_stop();
    if (worker_.joinable()) worker_.join();
    RunToEnd();
    std::unique_lock lock(device_.streams_mutex);
    device_.streams.erase(this);
    device_.left.wait(lock, [this] { return users_ == 0; });
  }

  // Calls use() for the streams of a device for which is() is true. They are
  // not destroyed before, and streams may be created meanwhile.
  static void ForEach(HostedDevice& device,
                      absl::FunctionRef<bool(const HostedStream&)> is,
                      absl::FunctionRef<void(HostedStream&)> use) {
    std::vector<HostedStream*> named;
    {
      const std::lock_guard lock(device.streams_mutex);
      for (HostedStream* stream : device.streams) {
        if (!is(*stream)) continue;
        ++stream->users_;
        named.push_back(stream);
      }
    }
    for (HostedStream* stream : named) {
      use(*stream);
      const std::lock_guard lock(device.streams_mutex);
      --stream->users_;
      device.left.notify_all();
    }
  }
  // Calls use() for the stream with this handle, if it still exists.
  static void WithThat(const CUstream_st* handle,
                       absl::FunctionRef<void(HostedStream&)> use) {
    for (HostedDevice& device : Devices()) {
      ForEach(
          device,
          [handle](const HostedStream& stream) {
            return &stream.handle_ == handle;
          },
          use);
    }
  }

  CUstream_st* handle() override { return &handle_; }
  DeviceMemory& memory() override { return memory_; }
  int64_t FreeBytes() override { return memory_.FreeBytes(); }
  std::string PciBus() override { return ""; }

  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    if (const int error = ErrorOf("copy"); error != 0) {
      return CudaStatus("copy", error);
    }
    HostedMemory* const source = HostedMemory::Holder(from);
    HostedMemory* const target = HostedMemory::Holder(to);
    const auto is_others = [this](const HostedMemory* memory) {
      return memory != nullptr && memory != &memory_;
    };
    if (is_others(source) || is_others(target)) {
      PushThroughHost(source, target, to, from, bytes);
      return absl::OkStatus();
    }
    const bool up = source == nullptr;
    if (!up || memory_.IsPinned(from)) {
      // Memory that is not pinned is filled now, so that reading it too early
      // is noticed. Queued work may still have to read pinned memory.
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

  absl::Status Zero(void* to, size_t bytes) override {
    const int error = ErrorOf("copy");
    if (error == 0) {
      Push([to, bytes] {
        std::memset(to, 0, bytes);
        return 0;
      });
    }
    return CudaStatus("zero", error);
  }

  absl::Status Synchronize() override {
    RETURN_IF_ERROR(Await(kEnd));
    return memory_.Check();
  }

  uint64_t Mark() override {
    if (ErrorOf("mark") != 0) return kEnd;
    const std::lock_guard lock(mutex_);
    return pushed_;
  }
  absl::Status Await(uint64_t mark) override {
    // A wait that is refused does nothing.
    int error = ErrorOf("wait");
    if (error == 0) {
      RunUntil(mark);
      error = device_.LostWith();
    }
    return CudaStatus("device cuda", error);
  }
  absl::Status Check() override {
    return CudaStatus("device cuda", ErrorOf("check"));
  }

  absl::Status Pin(std::byte* host, size_t bytes) override {
    const int error = ErrorOf("pin");
    return error == 0 ? memory_.Pin(host, bytes) : CudaStatus("pin", error);
  }
  void Unpin(std::byte* host) override { memory_.Unpin(host); }
  bool KernelsSee(std::byte* pinned) override {
    return ErrorOf("see") == 0 && memory_.IsPinned(pinned);
  }

  void Push(std::function<int()> work, bool outside = false) {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(work), outside});
    ++pushed_;
    pushes_.notify_all();
  }
  void RunToEnd() { RunUntil(kEnd); }
  // Drops the queued work.
  void Forget() {
    const std::lock_guard run(run_mutex_);
    TakeUntil(kEnd);
  }

 private:
  int ErrorOf(std::string_view call) const { return HostedErrorOf(call, gpu_); }

  // Queues a copy from or to another device, through the host, as neither
  // device may read the other's memory.
  void PushThroughHost(HostedMemory* source, HostedMemory* target, void* to,
                       const void* from, size_t bytes) {
    const auto copy = [bytes](HostedMemory* holder, void* there,
                              const void* here) {
      const auto move = [=] { std::memcpy(there, here, bytes); };
      holder != nullptr ? holder->WhileOpen(move) : move();
    };
    Push(
        [=] {
          std::vector<std::byte> between(bytes);
          copy(source, between.data(), from);
          copy(target, to, between.data());
          return 0;
        },
        /*outside=*/true);
  }

  // The worker thread: does a little of the queue at a time.
  void WorkWithDelays(uint64_t seed, const std::stop_token& stop) {
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
  std::deque<Work> TakeUntil(uint64_t mark) {
    const std::lock_guard lock(mutex_);
    std::deque<Work> work;
    for (; !queue_.empty() && pushed_ - queue_.size() < mark;
         queue_.pop_front()) {
      work.push_back(std::move(queue_.front()));
    }
    return work;
  }

  // Does the work up to `mark`. A kernel's fault loses the device, which then
  // does nothing more.
  void RunUntil(uint64_t mark) {
    const std::lock_guard run(run_mutex_);
    const std::deque<Work> work = TakeUntil(mark);
    if (work.empty() || device_.LostWith() != 0) return;
    int error = 0;
    for (auto next = work.begin(); next != work.end() && error == 0;) {
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
    if (error != 0) device_.Lose(error, HostExecutor::TakeFault());
  }

  const int gpu_;
  HostedMemory& memory_;
  HostedDevice& device_;
  std::mutex run_mutex_;                // held while queued work is done
  std::mutex mutex_;                    // guards the queue
  std::condition_variable_any pushes_;  // wakes the worker
  std::deque<Work> queue_;
  uint64_t pushed_ = 0;
  CUstream_st handle_;
  int users_ = 0;          // other threads that use it now
  std::stop_source stop_;  // stops the worker
  std::thread worker_;
};

// The device. If it was lost, it is made usable again, and the work that was
// queued on it is dropped.
HostedDevice& WholeDevice(int gpu) {
  HostedDevice& device = DeviceOf(gpu);
  if (device.LostWith() != 0) {
    HostedStream::ForEach(
        device, [](const HostedStream&) { return true; },
        [](HostedStream& stream) { stream.Forget(); });
  }
  device.MakeWhole();
  return device;
}

}  // namespace

void RunHostedStreams(int gpu) {
  HostedStream::ForEach(
      DeviceOf(gpu), [](const HostedStream&) { return true; },
      [](HostedStream& stream) { stream.RunToEnd(); });
}

int HostedErrorOf(std::string_view call, int gpu) {
  asked_last = gpu;
  HostedDevice& device = DeviceOf(gpu);
  const std::lock_guard lock(device.mutex);
  if (device.lost != 0) return device.lost;
  const int error = device.fault != nullptr ? device.fault(call) : 0;
  if (LosesDevice(error)) device.lost = error;
  return error;
}

void SetHostedDelays(uint64_t seed) { delays_seed = seed; }

void QueueHostedWork(CUstream_st* stream, std::function<int()> work) {
  HostedStream::WithThat(stream, [&](HostedStream& own) {
    own.Push(std::move(work), /*outside=*/true);
  });
}

void RunHostedStream(CUstream_st* stream) {
  HostedStream::WithThat(stream, [](HostedStream& own) { own.RunToEnd(); });
}

bool CudaStream::IsSimulated() { return true; }

GpuFacts CudaStream::FindGpu(int gpu) {
  HostedFacts& own = HostedFacts::Get();
  const std::lock_guard lock(own.mutex);
  GpuFacts facts = own.facts;
  facts.gpu = gpu;
  return facts;
}

int CudaStream::Open(int gpu, std::unique_ptr<CudaStream>* stream) {
  const int error = HostedErrorOf("create", gpu);
  if (error == 0) {
    *stream = std::make_unique<HostedStream>(gpu, Order::kAscending);
  }
  return error;
}

std::string CudaErrorText(int /*error*/) {
  const std::string fault = HostExecutor::TakeFault();
  if (!fault.empty()) return fault;
  HostedDevice& device = DeviceOf(asked_last);
  const std::lock_guard lock(device.mutex);
  return device.why.empty() ? "refused by a test" : device.why;
}

int64_t HostedPinnedBytes() {
  int64_t bytes = 0;
  for (int gpu = 0; gpu < HostedMemory::kMostGpus; ++gpu) {
    bytes += HostedMemory::Get(gpu).PinnedBytes();
  }
  return bytes;
}

void SetHostedGpu(const GpuFacts& facts) {
  HostedFacts& own = HostedFacts::Get();
  const std::lock_guard lock(own.mutex);
  own.facts = facts;
}

void SetHostedFaultsOf(int gpu, std::function<int(std::string_view)> fault) {
  HostedDevice& device = WholeDevice(gpu);
  const std::lock_guard lock(device.mutex);
  device.fault = std::move(fault);
}

void SetHostedFaults(const std::function<int(std::string_view)>& fault) {
  for (int gpu = 0; gpu < HostedMemory::kMostGpus; ++gpu) {
    SetHostedFaultsOf(gpu, fault);
  }
}

std::unique_ptr<Stream> MakeHostedStream(Order order, int gpu) {
  WholeDevice(gpu);
  return *Stream::Over(std::make_unique<HostedStream>(gpu, order));
}

}  // namespace tiercel
