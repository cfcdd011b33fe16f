#include "kernels/device/hosted_stream.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
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

// The memory of the one device: a mapping for each block, and the block at its
// end. Nobody may touch it but who holds it open.
class HostedMemory final : public DeviceMemory {
 public:
  absl::StatusOr<std::byte*> Allocate(size_t bytes,
                                      std::string_view what) override {
    const size_t room = Room(bytes);
    void* const mapped =
        room < bytes ? MAP_FAILED
                     : mmap(nullptr, room + kPage, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      return MemoryError(
          "out_of_memory",
          absl::StrCat(std::string(what), ": need ", bytes, " bytes"));
    }
    auto* const start = static_cast<std::byte*>(mapped);
    std::memset(start, static_cast<int>(kUntouched), room);
    mprotect(start, room + kPage, PROT_NONE);
    const auto aligned = AlignedBytes(static_cast<int64_t>(bytes));
    Count(aligned);
    std::byte* const data = start + room - aligned;
    const std::lock_guard lock(mutex_);
    blocks_[data] = bytes;
    return data;
  }

  void Free(std::byte* data, size_t bytes) override;
  absl::Status Copy(std::byte* to, const std::byte* from,
                    size_t bytes) override;

  bool Holds(const void* address) {
    const auto* const at = static_cast<const std::byte*>(address);
    const std::lock_guard lock(mutex_);
    const auto after = blocks_.upper_bound(const_cast<std::byte*>(at));
    if (after == blocks_.begin()) return false;
    const auto& [data, bytes] = *std::prev(after);
    return at < data + bytes;
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
  std::map<std::byte*, size_t> blocks_;
};

HostedMemory& Memory() {
  static HostedMemory* const memory = new HostedMemory;
  return *memory;
}

class HostedStream final : public CudaStream {
 public:
  explicit HostedStream(Order order) : handle_{HostExecutor(order), &queue_} {
    const std::lock_guard lock(All().mutex);
    All().streams.insert(this);
  }
  ~HostedStream() override {
    Run();
    const std::lock_guard lock(All().mutex);
    All().streams.erase(this);
  }

  // What a device does that is waited for.
  static void RunAll() {
    const std::lock_guard lock(All().mutex);
    for (HostedStream* stream : All().streams) stream->Run();
  }

  static bool AnyQueued() {
    const std::lock_guard lock(All().mutex);
    return std::any_of(
        All().streams.begin(), All().streams.end(),
        [](const HostedStream* stream) { return !stream->queue_.empty(); });
  }

  CUstream_st* handle() override { return &handle_; }
  DeviceMemory& memory() override { return Memory(); }
  int64_t FreeBytes() override { return FreeHostMemory(); }

  absl::Status Copy(void* to, const void* from, size_t bytes) override {
    if (Memory().Holds(from)) {
      if (!Memory().Holds(to)) {
        std::memset(to, static_cast<int>(kUntouched), bytes);
      }
      queue_.emplace_back([to, from, bytes] {
        std::memcpy(to, from, bytes);
        return 0;
      });
      return absl::OkStatus();
    }
    const auto* const first = static_cast<const std::byte*>(from);
    queue_.emplace_back(
        [to, sent = std::vector<std::byte>(first, first + bytes)] {
          std::memcpy(to, sent.data(), sent.size());
          return 0;
        });
    return absl::OkStatus();
  }

  absl::Status Zero(void* to, size_t bytes) override {
    queue_.emplace_back([to, bytes] {
      std::memset(to, 0, bytes);
      return 0;
    });
    return absl::OkStatus();
  }

  absl::Status Synchronize() override {
    Run();
    return failed_.ok() ? Memory().Check() : failed_;
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

  // The first failure ends the queue, and the device: as with CUDA, everybody
  // is told from then on.
  void Run() {
    const std::vector<std::function<int()>> work = std::exchange(queue_, {});
    if (work.empty()) return;
    Memory().WhileOpen([&] {
      for (const std::function<int()>& one : work) {
        const int error = one();
        if (error == 0) continue;
        failed_.Update(CudaStatus("device cuda", error));
        return;
      }
    });
  }

  std::vector<std::function<int()>> queue_;
  absl::Status failed_;
  CUstream_st handle_;
};

// As CUDA's own it waits for all that is queued.
void HostedMemory::Free(std::byte* data, size_t bytes) {
  HostedStream::RunAll();
  const auto aligned = AlignedBytes(static_cast<int64_t>(bytes));
  Count(-aligned);
  const std::lock_guard lock(mutex_);
  blocks_.erase(data);
  munmap(data + aligned - Room(bytes), Room(bytes) + kPage);
}

absl::Status HostedMemory::Copy(std::byte* to, const std::byte* from,
                                size_t bytes) {
  // CUDA would not wait for it.
  if (HostedStream::AnyQueued()) {
    return DeviceError("device_failed", "copied beside work that is queued");
  }
  WhileOpen([&] { std::memcpy(to, from, bytes); });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Create() {
  return std::make_unique<HostedStream>(Order::kAscending);
}

absl::Status CudaStatus(std::string_view who, int error) {
  if (error == 0) return absl::OkStatus();
  return DeviceError("device_failed", absl::StrCat(std::string(who), ": ",
                                                   HostExecutor::TakeFault()));
}

std::unique_ptr<Stream> MakeHostedStream(Order order) {
  return *Stream::Over(std::make_unique<HostedStream>(order));
}

}  // namespace tiercel
