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

// Where a link sees the host tier: where regions have their addresses, and the
// only mappings of those that have none. Thread-safe.
class HostMappings {
 public:
  // What is mapped is put where `placement` (null: anywhere) says.
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
    bool own = false;  // made here, where the region has no address
  };
  static void Unmap(const Mapping& mapping);

  const std::shared_ptr<Placement> placement_;
  std::mutex mutex_;  // of mapped_
  std::map<const HostRegion*, Mapping> mapped_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_HOST_MAPPINGS_H_
