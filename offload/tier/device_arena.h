#ifndef TIERCEL_OFFLOAD_TIER_DEVICE_ARENA_H_
#define TIERCEL_OFFLOAD_TIER_DEVICE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/base/device_memory.h"
#include "offload/tier/host_region.h"

namespace tiercel {

// The memory of one device, taken from the system once and divided. It never
// gives more than its budget: what does not fit is refused with the numbers.
class DeviceArena final : public DeviceMemory {
 public:
  // Errors: out_of_memory where the system cannot give `budget` bytes.
  static absl::StatusOr<std::unique_ptr<DeviceArena>> Create(int64_t budget);

  absl::StatusOr<std::byte*> Allocate(size_t bytes,
                                      std::string_view what) override;
  void Free(std::byte* data, size_t bytes) override;

  int64_t budget() const { return budget_; }
  int64_t free() const { return budget_ - used(); }

 private:
  DeviceArena(int64_t budget, HostRegion region);

  const int64_t budget_;
  const HostRegion region_;
  mutable std::mutex mutex_;
  std::map<int64_t, int64_t> holes_;  // offset -> bytes, never adjacent
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_DEVICE_ARENA_H_
