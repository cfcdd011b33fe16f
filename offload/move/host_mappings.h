#ifndef TIERCEL_OFFLOAD_MOVE_HOST_MAPPINGS_H_
#define TIERCEL_OFFLOAD_MOVE_HOST_MAPPINGS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "offload/tier/host_region.h"
#include "offload/tier/placement.h"

namespace tiercel {

// The addresses at which a link sees the regions of the host tier: their own,
// or, for regions without addresses, the only mappings that exist of them.
// Thread-safe.
class HostMappings {
 public:
  // `placement` places the memory of every region; null: none does.
  explicit HostMappings(std::shared_ptr<Placement> placement)
      : placement_(std::move(placement)) {}
  ~HostMappings();
  HostMappings(const HostMappings&) = delete;
  HostMappings& operator=(const HostMappings&) = delete;

  // Errors: out_of_memory.
  absl::StatusOr<std::byte*> AddressOf(const HostRegion& region);
  // Called before `region` ends.
  void Forget(const HostRegion& region);

 private:
  struct Mapping {
    std::byte* address = nullptr;  // null: not asked for
    size_t bytes = 0;
    bool own = false;  // mapped here, as the region has no address
  };
  static void Unmap(const Mapping& mapping);

  const std::shared_ptr<Placement> placement_;
  std::mutex mutex_;  // guards mapped_
  std::map<const HostRegion*, Mapping> mapped_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_HOST_MAPPINGS_H_
