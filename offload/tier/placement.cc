#include "offload/tier/placement.h"

#include <hwloc.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tiercel {

struct Placement::Topology {
  hwloc_topology_t handle = nullptr;
  hwloc_nodeset_t nearest = nullptr;  // null: one node or none, no choice

  ~Topology() {
    if (nearest != nullptr) hwloc_bitmap_free(nearest);
    if (handle != nullptr) hwloc_topology_destroy(handle);
  }
};

// The device of a CPU is its own cores: the nodes near those this process may
// run on.
Placement::Placement(std::shared_ptr<const Faults> faults)
    : faults_(std::move(faults)) {
  auto topology = std::make_unique<Topology>();
  if (hwloc_topology_init(&topology->handle) != 0) {
    topology->handle = nullptr;
    Warn("host memory: hwloc gives no topology; not placed");
    return;
  }
  if (hwloc_topology_load(topology->handle) != 0) {
    Warn("host memory: hwloc cannot read the topology; not placed");
    return;
  }
  if (hwloc_get_nbobjs_by_type(topology->handle, HWLOC_OBJ_NUMANODE) > 1) {
    const hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
    topology->nearest = hwloc_bitmap_alloc();
    if (cpus == nullptr || topology->nearest == nullptr ||
        hwloc_get_cpubind(topology->handle, cpus, HWLOC_CPUBIND_PROCESS) != 0) {
      Warn("host memory: the CPUs of this process are not known; not placed");
      hwloc_bitmap_free(topology->nearest);
      topology->nearest = nullptr;
    } else {
      hwloc_cpuset_to_nodeset(topology->handle, cpus, topology->nearest);
    }
    hwloc_bitmap_free(cpus);
  }
  topology_ = std::move(topology);
}

Placement::~Placement() = default;

void Placement::Apply(void* address, size_t bytes) {
  if (topology_ != nullptr && topology_->nearest != nullptr &&
      hwloc_set_area_membind(topology_->handle, address, bytes,
                             topology_->nearest, HWLOC_MEMBIND_BIND,
                             HWLOC_MEMBIND_BYNODESET) != 0) {
    Warn(absl::StrCat("host memory: not placed near the device: ",
                      std::strerror(errno)));
  }
  if (faults_ != nullptr &&
      Fails(faults_->pinning, static_cast<int64_t>(bytes))) {
    Warn("host memory: not pinned (refused by a test)");
  } else if (mlock2(address, bytes, MLOCK_ONFAULT) != 0) {
    Warn(absl::StrCat("host memory: not pinned (", std::strerror(errno),
                      "; `ulimit -l` sets the limit)"));
  }
}

std::vector<std::string> Placement::warnings() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {warnings_.begin(), warnings_.end()};
}

void Placement::Warn(std::string text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  warnings_.insert(std::move(text));
}

}  // namespace tiercel
