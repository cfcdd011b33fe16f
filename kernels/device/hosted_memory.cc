#include "kernels/device/hosted_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/machine/cuda_error.h"
#include "kernels/machine/resource_limits.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

// TSan sees every access by itself. For it memory is neither protected nor
// filled, which would take hours, and no lock orders the work of streams.
#if defined(__SANITIZE_THREAD__)
constexpr bool kGuards = false;
#else
constexpr bool kGuards = true;
#endif

constexpr std::byte kUntouched{0xff};  // NaN, in every type
constexpr size_t kPage = 4096;
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kMostBytes = PTRDIFF_MAX;

size_t Room(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

int64_t Aligned(size_t bytes) {
  return AlignedBytes(static_cast<int64_t>(bytes));
}

// Maps new memory; null: there is none. Its pages are protected again and
// again, so it has large ones, which are fewer, if possible.
std::byte* Map(size_t bytes) {
  const size_t spare = bytes < kLargePage ? 0 : kLargePage;
  void* const mapped = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(mapped);
  const size_t before =
      spare == 0 ? 0 : -reinterpret_cast<uintptr_t>(first) % kLargePage;
  if (before > 0) munmap(first, before);
  if (before < spare) munmap(first + before + bytes, spare - before);
  (void)madvise(first + before, bytes, MADV_HUGEPAGE);
  return first + before;
}

}  // namespace

HostedMemory& HostedMemory::Get(int gpu) {
  static const auto* const all = [] {
    auto* const made = new std::vector<HostedMemory*>;
    for (int i = 0; i < kMostGpus; ++i) made->push_back(new HostedMemory(i));
    return made;
  }();
  return *(*all)[static_cast<size_t>(gpu)];
}

HostedMemory* HostedMemory::Holder(const void* address) {
  const std::lock_guard lock(Mutex());
  for (int gpu = 0; gpu < kMostGpus; ++gpu) {
    HostedMemory& memory = Get(gpu);
    if (memory.blocks_.Hold(address)) return &memory;
  }
  return nullptr;
}

std::mutex& HostedMemory::Mutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

int64_t HostedMemory::FreeBytes() {
  return HostedErrorOf("free", gpu_) == 0 ? FreeHostMemory() : 0;
}

int HostedMemory::Take(size_t bytes, std::byte** data) {
  if (const int error = HostedErrorOf("allocate", gpu_); error != 0)
    return error;
  const size_t room = Room(bytes);
  std::byte* const start = bytes > kMostBytes ? nullptr : Map(room + kPage);
  if (start == nullptr) return kCudaOutOfMemory;
  if (kGuards) {
    std::memset(start, static_cast<int>(kUntouched), room);
    mprotect(start, room, PROT_NONE);
  }
  mprotect(start + room, kPage, PROT_NONE);
  // The guard gets another attribute than the block. Else the system would
  // merge both mappings each time that the block is closed, and split them
  // again.
  (void)madvise(start + room, kPage, MADV_DONTFORK);
  *data = start + room - Aligned(bytes);
  const std::lock_guard lock(Mutex());
  blocks_.Add(*data, bytes);
  return kCudaSuccess;
}

void HostedMemory::Free(std::byte* data, size_t bytes) {
  RunHostedStreams(gpu_);
  Count(-Aligned(bytes));
  const std::lock_guard lock(Mutex());
  blocks_.Remove(data);
  munmap(data + Aligned(bytes) - Room(bytes), Room(bytes) + kPage);
}

absl::Status HostedMemory::Copy(std::byte* to, const std::byte* from,
                                size_t bytes) {
  RunHostedStreams(gpu_);
  const int error = HostedErrorOf("copy", gpu_);
  if (error == 0) WhileOpen([&] { std::memcpy(to, from, bytes); });
  return CudaStatus("copy", error);
}

absl::Status HostedMemory::Pin(std::byte* host, size_t bytes) {
  const std::lock_guard lock(Mutex());
  if (pinned_.Meet(host, bytes)) {
    return DeviceError("device_failed", "pin: some of it is pinned already");
  }
  pinned_.Add(host, bytes);
  return absl::OkStatus();
}

void HostedMemory::Unpin(std::byte* host) {
  const std::lock_guard lock(Mutex());
  pinned_.Remove(host);
}

int64_t HostedMemory::PinnedBytes() {
  const std::lock_guard lock(Mutex());
  int64_t all = 0;
  for (const auto& [start, bytes] : pinned_) all += static_cast<int64_t>(bytes);
  return all;
}

bool HostedMemory::IsPinned(const void* host) {
  const std::lock_guard lock(Mutex());
  return pinned_.Hold(host);
}

void HostedMemory::WhileOpen(absl::FunctionRef<void()> work) {
  if (!kGuards) return work();
  const std::lock_guard lock(Mutex());
  Protect(PROT_READ | PROT_WRITE);
  work();
  Protect(PROT_NONE);
}

void HostedMemory::Protect(int access) {
  for (const auto& [data, bytes] : blocks_) {
    mprotect(data + Aligned(bytes) - Room(bytes), Room(bytes), access);
  }
}

absl::Status HostedMemory::Check() {
  absl::Status status;
  if (!kGuards) return status;  // the ends of blocks were not filled
  WhileOpen([&] {
    for (const auto& [data, bytes] : blocks_) {
      for (std::byte* p = data + bytes; p < data + Aligned(bytes); ++p) {
        if (*p == kUntouched) continue;
        status.Update(DeviceError(
            "device_failed", absl::StrCat("byte ", p - data, " of an array of ",
                                          bytes, " was written")));
      }
    }
  });
  return status;
}

}  // namespace tiercel
