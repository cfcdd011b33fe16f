#ifndef TIERCEL_KERNELS_DEVICE_HOSTED_MEMORY_H_
#define TIERCEL_KERNELS_DEVICE_HOSTED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/machine/gpu_memory.h"

namespace tiercel {

// Runs of bytes that do not overlap, by their starts.
class Ranges {
 public:
  void Add(std::byte* start, size_t bytes) { ranges_[start] = bytes; }
  // Whether the range has bytes of one that is there.
  bool Meet(std::byte* start, size_t bytes) const {
    const auto after = ranges_.lower_bound(start);
    return Hold(start) ||
           (after != ranges_.end() && after->first < start + bytes);
  }
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

// The memory of a hosted device: a mapping for each block, and the block at its
// end. Nobody may touch it but who holds it open, and one device's is open at a
// time: no other may read it. (For TSan all of it is open.)
class HostedMemory final : public GpuMemory {
 public:
  static constexpr int kMostGpus = 64;

  static HostedMemory& Get(int gpu = 0);
  // Whose the address is; null: no device's.
  static HostedMemory* Holder(const void* address);

  int64_t FreeBytes() override;
  // These two wait for all that is queued, as CUDA's own do.
  void Free(std::byte* data, size_t bytes) override;
  absl::Status Copy(std::byte* to, const std::byte* from,
                    size_t bytes) override;

  // Memory of the host that the device copies from and to by itself. Errors:
  // device_failed where some of it is pinned.
  absl::Status Pin(std::byte* host, size_t bytes);
  void Unpin(std::byte* host);
  bool IsPinned(const void* host);
  int64_t PinnedBytes();

  // Calls work() while the memory may be touched. It neither allocates nor
  // frees, nor waits.
  void WhileOpen(absl::FunctionRef<void()> work);

  // device_failed where something was written behind a block.
  absl::Status Check();

 private:
  int Take(size_t bytes, std::byte** data) override;
  void Protect(int access);

  explicit HostedMemory(int gpu) : gpu_(gpu) {}
  // All devices share it.
  static std::mutex& Mutex();

  const int gpu_;
  Ranges blocks_;
  Ranges pinned_;
};

// Works off what is queued in all streams of a device (hosted_stream.cc).
void RunHostedStreams(int gpu);

// The cudaError_t with which a call of the door ends that is about to be made
// of a device: what a test says, or of a lost one what lost it; 0: it is made.
int HostedErrorOf(std::string_view call, int gpu);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_HOSTED_MEMORY_H_
