#ifndef TIERCEL_OFFLOAD_TIER_DEVICE_ARENA_H_
#define TIERCEL_OFFLOAD_TIER_DEVICE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "offload/tier/faults.h"
#include "offload/tier/host_region.h"

namespace tiercel {

// The memory of one device, taken from the system once and divided. It never
// gives more than its budget: what does not fit is refused with the numbers.
class DeviceArena final : public DeviceMemory {
 public:
  // Errors: out_of_memory where the system cannot give `budget` bytes.
  static absl::StatusOr<std::unique_ptr<DeviceArena>> Create(
      int64_t budget, std::shared_ptr<const Faults> faults = nullptr);

  absl::StatusOr<std::byte*> Allocate(size_t bytes,
                                      std::string_view what) override;
  void Free(std::byte* data, size_t bytes) override;

  int64_t free() const { return budget_ - used(); }

 private:
  struct Block {
    int64_t bytes;
    bool free;
  };

  DeviceArena(int64_t budget, HostRegion region,
              std::shared_ptr<const Faults> faults);

  const int64_t budget_;
  const std::shared_ptr<const Faults> faults_;
  const HostRegion region_;
  mutable std::mutex mutex_;
  // By offset, all of the budget; two free ones are never neighbours.
  std::map<int64_t, Block> blocks_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_DEVICE_ARENA_H_
