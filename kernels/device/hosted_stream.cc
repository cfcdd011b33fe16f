#include "kernels/device/hosted_stream.h"

#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"
#include "kernels/machine/allowance.h"
#include "kernels/machine/cuda_stream.h"

namespace tiercel {
namespace {

constexpr std::byte kUntouched{0xff};  // NaN, in every type
constexpr size_t kPage = 4096;

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

bool IsRefused(std::string_view call) {
  Faults& faults = AllFaults();
  const std::lock_guard lock(faults.mutex);
  if (faults.lost) return true;
  const HostedFault fault =
      faults.of != nullptr ? faults.of(call) : HostedFault::kNone;
  faults.lost = fault == HostedFault::kLost;
  return fault != HostedFault::kNone;
}

absl::Status Refusal(std::string_view call) {
  if (!IsRefused(call)) return absl::OkStatus();
  return DeviceError("device_failed",
                     absl::StrCat(std::string(call), ": refused by a test"));
}

// Runs of bytes that do not overlap, by their starts.
class Ranges {
 public:
  void Add(std::byte* start, size_t bytes) { ranges_[start] = bytes; }
  void Remove(std::byte* start) { ranges_.erase(start); }
  bool Hold(const void* address) const {
    const auto* const at = static_cast<const std::byte*>(address);
    const auto after = ranges_.upper_bound(const_cast<std::byte*>(at));
    if (after == ranges_.begin()) return false;
    const auto& [start, bytes] = *std::prev(after);
    return at < start + bytes;
  }
  auto begin() const { return ranges_.begin(); }
  auto end() const { return ranges_.end(); }

 private:
  std::map<std::byte*, size_t> ranges_;
};

// The memory of the one device: a mapping for each block, and the block at its
// end. Nobody may touch it but who holds it open.
class HostedMemory final : public DeviceMemory {
 public:
  absl::StatusOr<std::byte*> Allocate(size_t bytes,
                                      std::string_view what) override {
    const size_t room = Room(bytes);
    void* const mapped =
        room < bytes || IsRefused("allocate")
            ? MAP_FAILED
            : mmap(nullptr, room + kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      return MemoryError(
          "out_of_memory",
          absl::StrCat(std::string(what), ": need ", bytes, " bytes"));
    }
    auto* const start = static_cast<std::byte*>(mapped);
    // Of large pages fewer have to be opened and shut.
    (void)madvise(mapped, room, MADV_HUGEPAGE);
    std::memset(start, static_cast<int>(kUntouched), room);
    mprotect(start, room + kPage, PROT_NONE);
    const auto aligned = AlignedBytes(static_cast<int64_t>(bytes));
    Count(aligned);
    std::byte* const data = start + room - aligned;
    const std::lock_guard lock(mutex_);
    blocks_.Add(data, bytes);
    return data;
  }

  void Free(std::byte* data, size_t bytes) override;
  absl::Status Copy(std::byte* to, const std::byte* from,
                    size_t bytes) override;

  bool Holds(const void* address) {
    const std::lock_guard lock(mutex_);
    return blocks_.Hold(address);
  }

  // Memory of the host that the device copies from and to by itself.
  void Pin(std::byte* host, size_t bytes) {
    const std::lock_guard lock(mutex_);
    pinned_.Add(host, bytes);
  }
  void Unpin(std::byte* host) {
    const std::lock_guard lock(mutex_);
    pinned_.Remove(host);
  }
  bool IsPinned(const void* host) {
    const std::lock_guard lock(mutex_);
    return pinned_.Hold(host);
  }

  // Calls work() while the memory may be touched. It neither allocates nor
  // frees.
  template <typename Work>
  void WhileOpen(const Work& work) {
    const std::lock_guard lock(mutex_);
    Protect(PROT_READ | PROT_WRITE);
    work();
    Protect(PROT_NONE);
  }

  // device_failed where something was written behind a block.
  absl::Status Check() {
    absl::Status status;
    WhileOpen([&] {
      for (const auto& [data, bytes] : blocks_) {
        const auto aligned = AlignedBytes(static_cast<int64_t>(bytes));
        for (std::byte* p = data + bytes; p < data + aligned; ++p) {
          if (*p == kUntouched) continue;
          status.Update(DeviceError(
              "device_failed", absl::StrCat("byte ", p - data, " of an array ",
                                            "of ", bytes, " was written")));
        }
      }
    });
    return status;
  }

 private:
  static size_t Room(size_t bytes) {
    return (bytes + kPage - 1) / kPage * kPage;
  }
  void Protect(int access) {
    for (const auto& [data, bytes] : blocks_) {
      const auto aligned = AlignedBytes(static_cast<int64_t>(bytes));
      mprotect(data + aligned - Room(bytes), Room(bytes), access);
    }
  }

  std::mutex mutex_;
  Ranges blocks_;
  Ranges pinned_;
};

HostedMemory& Memory() {
  static HostedMemory* const memory = new HostedMemory;
  return *memory;
}

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
        std::memset(to, static_cast<int>(kUntouched), bytes);
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
    RunUntil(mark);
    if (absl::Status s = Refusal("wait"); !s.ok()) return s;
    const std::lock_guard lock(mutex_);
    return failed_;
  }

  absl::Status Pin(std::byte* host, size_t bytes) override {
    if (absl::Status s = Refusal("pin"); !s.ok()) return s;
    Memory().Pin(host, bytes);
    return absl::OkStatus();
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

  // The first failure ends what was queued, and the device: as with CUDA,
  // everybody is told from then on.
  void RunUntil(uint64_t mark) {
    const std::lock_guard run(run_mutex_);
    const std::deque<Work> work = TakeUntil(mark);
    if (work.empty()) return;
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

// As CUDA's own it waits for all that is queued.
void HostedMemory::Free(std::byte* data, size_t bytes) {
  HostedStream::RunAll();
  const auto aligned = AlignedBytes(static_cast<int64_t>(bytes));
  Count(-aligned);
  const std::lock_guard lock(mutex_);
  blocks_.Remove(data);
  munmap(data + aligned - Room(bytes), Room(bytes) + kPage);
}

absl::Status HostedMemory::Copy(std::byte* to, const std::byte* from,
                                size_t bytes) {
  HostedStream::RunAll();
  WhileOpen([&] { std::memcpy(to, from, bytes); });
  return absl::OkStatus();
}

}  // namespace

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
