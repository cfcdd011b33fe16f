#ifndef TIERCEL_OFFLOAD_TIER_PLACEMENT_H_
#define TIERCEL_OFFLOAD_TIER_PLACEMENT_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/cuda/cuda_driver.h"
#include "offload/tier/host_region.h"

namespace tiercel {

// Places the host tier's memory on the NUMA node nearest the device, and pins
// it there, so that copies run at the link's rate. The system may refuse
// either, in containers and under small limits; that costs speed only.
class Placement {
 public:
  // Places memory near `gpu`, which outlives this; if that is null, near the
  // CPUs that this process may run on.
  explicit Placement(DeviceQueue* gpu = nullptr);
  ~Placement();
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  // Has the pages of `bytes` at `address`, page-aligned and not written yet,
  // placed as they are first written. Where there is no GPU they are pinned
  // then, too.
  void Apply(void* address, size_t bytes);
  // Pins such bytes for the GPU now. Returns false if that is refused.
  bool Pin(std::byte* address, size_t bytes);
  void Unpin(std::byte* address);

  // A sentence for each kind of request that was refused.
  std::vector<std::string> warnings() const;

 private:
  struct Topology;

  void Warn(std::string text);

  // Returns true if a test has the request refused.
  bool IsRefused(size_t bytes);

  DeviceQueue* const gpu_;
  std::unique_ptr<Topology> topology_;  // null: it is not known
  mutable std::mutex mutex_;
  std::set<std::string> warnings_;
};

// The regions of the host tier that a link has placed, each when it first
// copies there. Thread-safe.
class PlacedRegions {
 public:
  // `placement` places the memory of every region; null: none does.
  explicit PlacedRegions(std::shared_ptr<Placement> placement)
      : placement_(std::move(placement)) {}

  // Places the region, once.
  void Place(const HostRegion& region);
  // Called before `region` ends.
  void Forget(const HostRegion& region);

 private:
  const std::shared_ptr<Placement> placement_;
  std::mutex mutex_;  // guards placed_
  std::set<const HostRegion*> placed_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_PLACEMENT_H_
