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
  // Returns true if the range overlaps one of these.
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

// The memory of a hosted device. Each block is at the end of a mapping of its
// own. An access faults unless the memory is open (WhileOpen), and one device's
// memory is open at a time, so that no device can read another's. (For TSan all
// memory is open.)
class HostedMemory final : public GpuMemory {
 public:
  static constexpr int kMostGpus = 64;

  static HostedMemory& Get(int gpu = 0);
  // The memory that has the address; null: it is no device's.
  static HostedMemory* Holder(const void* address);

  int64_t FreeBytes() override;
  // These two wait for all queued work, as those of CUDA do.
  void Free(std::byte* data, size_t bytes) override;
  absl::Status Copy(std::byte* to, const std::byte* from,
                    size_t bytes) override;

  // Pins memory of the host, which the device then reads and writes by itself.
  // Errors: device_failed if some of it is pinned already.
  absl::Status Pin(std::byte* host, size_t bytes);
  void Unpin(std::byte* host);
  bool IsPinned(const void* host);
  int64_t PinnedBytes();

  // Calls work() while the memory is open. work() must neither allocate nor
  // free, nor wait.
  void WhileOpen(absl::FunctionRef<void()> work);

  // Errors: device_failed if something was written after the end of a block.
  absl::Status Check();

 private:
  int Take(size_t bytes, std::byte** data) override;
  void Protect(int access);

  explicit HostedMemory(int gpu) : gpu_(gpu) {}
  // The mutex that all devices share.
  static std::mutex& Mutex();

  const int gpu_;
  Ranges blocks_;
  Ranges pinned_;
};

// Does the queued work of all streams of a device (hosted_stream.cc).
void RunHostedStreams(int gpu);

// The cudaError_t that a call to a device returns instead of being made: that
// of a test's `fault`, or the error that lost the device. 0: the call is made.
int HostedErrorOf(std::string_view call, int gpu);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_HOSTED_MEMORY_H_
