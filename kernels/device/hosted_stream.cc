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

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"
#include "kernels/device/hosted_memory.h"
#include "kernels/machine/allowance.h"
#include "kernels/machine/cuda_stream.h"

namespace tiercel {
namespace {

// What is refused now.
struct Faults {
  std::mutex mutex;
  std::function<HostedFault(std::string_view)> of;
  bool lost = false;
};

Faults& AllFaults() {
  static Faults* const faults = new Faults;
  return *faults;
}

bool IsLost() {
  Faults& faults = AllFaults();
  const std::lock_guard lock(faults.mutex);
  return faults.lost;
}

absl::Status Refusal(std::string_view call) {
  if (!IsRefused(call)) return absl::OkStatus();
  return DeviceError("device_failed",
                     absl::StrCat(std::string(call), ": refused by a test"));
}

HostedMemory& Memory() { return HostedMemory::Get(); }

// A queue that is worked off when somebody waits, on the thread that does.
class HostedStream final : public CudaStream {
  using Work = std::function<int()>;
  static constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
  static constexpr int kRefused = 999;  // cudaErrorUnknown

 public:
  explicit HostedStream(Order order)
      : handle_{HostExecutor(order), [this](Work work) {
                  if (IsRefused("launch")) return kRefused;
                  Push(std::move(work));
                  return 0;
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
  int64_t FreeBytes() override { return FreeHostMemory(); }
  std::string PciBus() override { return ""; }

  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    if (absl::Status s = Refusal("copy"); !s.ok()) return s;
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
    if (absl::Status s = Refusal("copy"); !s.ok()) return s;
    Push([to, bytes] {
      std::memset(to, 0, bytes);
      return 0;
    });
    return absl::OkStatus();
  }

  absl::Status Synchronize() override {
    if (absl::Status s = Await(kEnd); !s.ok()) return s;
    return Memory().Check();
  }

  uint64_t Mark() override {
    if (IsRefused("mark")) return kEnd;
    const std::lock_guard lock(mutex_);
    return pushed_;
  }
  absl::Status Await(uint64_t mark) override {
    // What is refused has not been waited for.
    if (absl::Status s = Refusal("wait"); !s.ok()) return s;
    RunUntil(mark);
    const std::lock_guard lock(mutex_);
    return failed_;
  }

  absl::Status Pin(std::byte* host, size_t bytes) override {
    if (absl::Status s = Refusal("pin"); !s.ok()) return s;
    return Memory().Pin(host, bytes);
  }
  void Unpin(std::byte* host) override { Memory().Unpin(host); }

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

  // The first failure drops what was to be done with it; who waits for this
  // queue is told from then on. A device that was lost does nothing more.
  void RunUntil(uint64_t mark) {
    const std::lock_guard run(run_mutex_);
    const std::deque<Work> work = TakeUntil(mark);
    if (work.empty() || IsLost()) return;
    Memory().WhileOpen([&] {
      for (const Work& one : work) {
        const int error = one();
        if (error == 0) continue;
        const std::lock_guard lock(mutex_);
        failed_.Update(CudaStatus("device cuda", error));
        return;
      }
    });
  }

  std::mutex run_mutex_;  // held by who works the queue off
  std::mutex mutex_;      // of the rest
  std::deque<Work> queue_;
  uint64_t pushed_ = 0;
  absl::Status failed_;
  CUstream_st handle_;
};

}  // namespace

void RunHostedStreams() { HostedStream::RunAll(); }

bool IsRefused(std::string_view call) {
  Faults& faults = AllFaults();
  const std::lock_guard lock(faults.mutex);
  if (faults.lost) return true;
  const HostedFault fault =
      faults.of != nullptr ? faults.of(call) : HostedFault::kNone;
  faults.lost = fault == HostedFault::kLost;
  return fault != HostedFault::kNone;
}

bool CudaStream::IsPlayed() { return true; }

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create() {
  if (IsRefused("create")) {
    return DeviceError("no_device", "device cuda: refused by a test");
  }
  return std::make_unique<HostedStream>(Order::kAscending);
}

absl::Status CudaStatus(std::string_view who, int error) {
  if (error == 0) return absl::OkStatus();
  const std::string fault = HostExecutor::TakeFault();
  return DeviceError("device_failed",
                     absl::StrCat(std::string(who), ": ",
                                  fault.empty() ? "refused by a test" : fault));
}

int64_t HostedPinnedBytes() { return Memory().PinnedBytes(); }

void SetHostedFaults(std::function<HostedFault(std::string_view call)> fault) {
  Faults& faults = AllFaults();
  const std::lock_guard lock(faults.mutex);
  faults.of = std::move(fault);
  faults.lost = false;
}

std::unique_ptr<Stream> MakeHostedStream(Order order) {
  return *Stream::Over(std::make_unique<HostedStream>(order));
}

}  // namespace tiercel
