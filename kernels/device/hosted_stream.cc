#include "kernels/device/hosted_stream.h"

#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/hosted_memory.h"
#include "kernels/machine/cuda_error.h"
#include "kernels/machine/cuda_stream.h"

namespace tiercel {
namespace {

// The one device, as all its streams and its memory find it.
struct HostedDevice {
  std::mutex mutex;
  GpuFacts facts = kHostedGpu;
  std::function<int(std::string_view)> fault;  // of tests
  int lost = 0;                                // by this error
  std::string why;

  static HostedDevice& Get() {
    static HostedDevice* const device = new HostedDevice;
    return *device;
  }
};

// With the first error.
void Lose(int error, std::string why) {
  HostedDevice& device = HostedDevice::Get();
  const std::lock_guard lock(device.mutex);
  if (device.lost != 0) return;
  device.lost = error;
  device.why = std::move(why);
}

int LostWith() {
  HostedDevice& device = HostedDevice::Get();
  const std::lock_guard lock(device.mutex);
  return device.lost;
}

void MakeWhole(HostedDevice& device) {
  device.lost = 0;
  device.why.clear();
}

HostedMemory& Memory() { return HostedMemory::Get(); }

// A queue that is worked off when somebody waits, on the thread that does.
class HostedStream final : public CudaStream {
  using Work = std::function<int()>;
  static constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();

 public:
  explicit HostedStream(Order order)
      : handle_{HostExecutor(order), [this](Work work) {
                  const int error = HostedErrorOf("launch");
                  if (error == 0) Push(std::move(work));
                  return error;
                }} {
    const std::lock_guard lock(All().mutex);
    All().streams.insert(this);
  }
  ~HostedStream() override {
    RunUntil(kEnd);
    const std::lock_guard lock(All().mutex);
    All().streams.erase(this);
  }

  // What a device does that is waited for.
  static void RunAll() {
    const std::lock_guard lock(All().mutex);
    for (HostedStream* stream : All().streams) stream->RunUntil(kEnd);
  }

  CUstream_st* handle() override { return &handle_; }
  DeviceMemory& memory() override { return Memory(); }
  int64_t FreeBytes() override { return Memory().FreeBytes(); }
  std::string PciBus() override { return ""; }

  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    if (const int error = HostedErrorOf("copy"); error != 0) {
      return CudaStatus("copy", error);
    }
    const bool up = !Memory().Holds(from);
    if (!up || Memory().IsPinned(from)) {
      // What is pinned may have to be read first, by what is queued.
      if (!up && !Memory().Holds(to) && !Memory().IsPinned(to)) {
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
    const int error = HostedErrorOf("copy");
    if (error == 0) {
      Push([to, bytes] {
        std::memset(to, 0, bytes);
        return 0;
      });
    }
    return CudaStatus("zero", error);
  }

  absl::Status Synchronize() override {
    if (absl::Status s = Await(kEnd); !s.ok()) return s;
    return Memory().Check();
  }

  uint64_t Mark() override {
    if (HostedErrorOf("mark") != 0) return kEnd;
    const std::lock_guard lock(mutex_);
    return pushed_;
  }
  absl::Status Await(uint64_t mark) override {
    // What is refused has not been waited for.
    int error = HostedErrorOf("wait");
    if (error == 0) {
      RunUntil(mark);
      error = LostWith();
    }
    return CudaStatus("device cuda", error);
  }
  absl::Status Check() override {
    return CudaStatus("device cuda", HostedErrorOf("check"));
  }

  absl::Status Pin(std::byte* host, size_t bytes) override {
    const int error = HostedErrorOf("pin");
    return error == 0 ? Memory().Pin(host, bytes) : CudaStatus("pin", error);
  }
  void Unpin(std::byte* host) override { Memory().Unpin(host); }
  bool KernelsSee(std::byte* pinned) override {
    return HostedErrorOf("see") == 0 && Memory().IsPinned(pinned);
  }

 private:
  struct Streams {
    std::mutex mutex;
    std::set<HostedStream*> streams;
  };
  static Streams& All() {
    static Streams* const all = new Streams;
    return *all;
  }

  void Push(Work work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    ++pushed_;
  }

  // What is to be done before `mark`.
  std::deque<Work> TakeUntil(uint64_t mark) {
    const std::lock_guard lock(mutex_);
    std::deque<Work> work;
    for (; !queue_.empty() && pushed_ - queue_.size() < mark;
         queue_.pop_front()) {
      work.push_back(std::move(queue_.front()));
    }
    return work;
  }

  // A kernel's fault loses the device, which does nothing more.
  void RunUntil(uint64_t mark) {
    const std::lock_guard run(run_mutex_);
    const std::deque<Work> work = TakeUntil(mark);
    if (work.empty() || LostWith() != 0) return;
    Memory().WhileOpen([&] {
      for (const Work& one : work) {
        const int error = one();
        if (error == 0) continue;
        Lose(error, HostExecutor::TakeFault());
        return;
      }
    });
  }

  std::mutex run_mutex_;  // held by who works the queue off
  std::mutex mutex_;      // of the rest
  std::deque<Work> queue_;
  uint64_t pushed_ = 0;
  CUstream_st handle_;
};

}  // namespace

void RunHostedStreams() { HostedStream::RunAll(); }

int HostedErrorOf(std::string_view call) {
  HostedDevice& device = HostedDevice::Get();
  const std::lock_guard lock(device.mutex);
  if (device.lost != 0) return device.lost;
  const int error = device.fault != nullptr ? device.fault(call) : 0;
  if (LosesDevice(error)) device.lost = error;
  return error;
}

bool CudaStream::IsPlayed() { return true; }

GpuFacts CudaStream::Look() {
  HostedDevice& device = HostedDevice::Get();
  const std::lock_guard lock(device.mutex);
  return device.facts;
}

int CudaStream::Open(std::unique_ptr<CudaStream>* stream) {
  const int error = HostedErrorOf("create");
  if (error == 0) *stream = std::make_unique<HostedStream>(Order::kAscending);
  return error;
}

std::string CudaErrorText(int /*error*/) {
  const std::string fault = HostExecutor::TakeFault();
  if (!fault.empty()) return fault;
  HostedDevice& device = HostedDevice::Get();
  const std::lock_guard lock(device.mutex);
  return device.why.empty() ? "refused by a test" : device.why;
}

int64_t HostedPinnedBytes() { return Memory().PinnedBytes(); }

void SetHostedGpu(const GpuFacts& facts) {
  HostedDevice& device = HostedDevice::Get();
  const std::lock_guard lock(device.mutex);
  device.facts = facts;
}

void SetHostedFaults(std::function<int(std::string_view call)> fault) {
  HostedDevice& device = HostedDevice::Get();
  const std::lock_guard lock(device.mutex);
  device.fault = std::move(fault);
  MakeWhole(device);
}

std::unique_ptr<Stream> MakeHostedStream(Order order) {
  {
    HostedDevice& device = HostedDevice::Get();
    const std::lock_guard lock(device.mutex);
    MakeWhole(device);
  }
  return *Stream::Over(std::make_unique<HostedStream>(order));
}

}  // namespace tiercel
