#ifndef TIERCEL_OFFLOAD_TIER_DEVICE_ARENA_H_
#define TIERCEL_OFFLOAD_TIER_DEVICE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "offload/tier/faults.h"
#include "offload/tier/host_region.h"

namespace tiercel {

// The memory of one device, taken from the system once and divided. It never
// gives more than its budget: what does not fit is refused with the numbers.
class DeviceArena final : public DeviceMemory {
 public:
  // From `device`, which outlives it, or (null) from the host's memory.
  // Errors: out_of_memory where that cannot give `budget` bytes.
  static absl::StatusOr<std::unique_ptr<DeviceArena>> Create(
      int64_t budget, std::shared_ptr<const Faults> faults = nullptr,
      DeviceMemory* device = nullptr);

  absl::StatusOr<std::byte*> Allocate(size_t bytes,
                                      std::string_view what) override;
  void Free(std::byte* data, size_t bytes) override;
  absl::Status Copy(std::byte* to, const std::byte* from,
                    size_t bytes) override;

  int64_t free() const { return budget_ - used(); }

 private:
  struct Block {
    int64_t bytes;
    bool free;
  };

  DeviceArena(int64_t budget, std::shared_ptr<const Faults> faults)
      : budget_(budget),
        faults_(std::move(faults)),
        blocks_({{0, {budget, /*free=*/true}}}) {}

  const int64_t budget_;
  const std::shared_ptr<const Faults> faults_;
  DeviceMemory* device_ = nullptr;  // null: the host's
  HostRegion host_;                 // one of these has all of it
  DeviceArray<std::byte> on_device_;
  std::byte* start_ = nullptr;
  mutable std::mutex mutex_;
  // By offset, all of the budget; two free ones are never neighbours.
  std::map<int64_t, Block> blocks_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_DEVICE_ARENA_H_
