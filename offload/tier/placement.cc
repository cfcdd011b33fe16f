#include "offload/tier/placement.h"

#include <hwloc.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/system/faults.h"
#include "kernels/system/no_signals.h"

namespace tiercel {

struct Placement::Topology {
  hwloc_topology_t handle = nullptr;
  hwloc_nodeset_t nearest = nullptr;  // null: there is no choice of nodes

  ~Topology() {
    if (nearest != nullptr) hwloc_bitmap_free(nearest);
    if (handle != nullptr) hwloc_topology_destroy(handle);
  }
};

namespace {

// Sets `nearest` to the NUMA nodes near the GPU at the PCI address `bus`, or,
// if that is empty, near the cores that this process may run on. Returns false
// if they are not known.
bool FindNearest(hwloc_topology_t topology, const std::string& bus,
                 hwloc_nodeset_t nearest) {
  if (!bus.empty()) {
    const hwloc_obj_t gpu =
        hwloc_get_pcidev_by_busidstring(topology, bus.c_str());
    if (gpu == nullptr) return false;
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, gpu);
    return hwloc_bitmap_copy(nearest, near->nodeset) == 0;
  }
  const hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
  const bool known =
      cpus != nullptr &&
      hwloc_get_cpubind(topology, cpus, HWLOC_CPUBIND_PROCESS) == 0;
  if (known) hwloc_cpuset_to_nodeset(topology, cpus, nearest);
  hwloc_bitmap_free(cpus);
  return known;
}

}  // namespace

Placement::Placement(DeviceQueue* gpu) : gpu_(gpu) {
  const NoSignals no_signals;  // hwloc loads drivers, which start threads
  auto topology = std::make_unique<Topology>();
  if (hwloc_topology_init(&topology->handle) != 0) {
    topology->handle = nullptr;
    Warn("host memory: hwloc gives no topology; not placed");
    return;
  }
  hwloc_topology_set_io_types_filter(topology->handle,
                                     HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(topology->handle) != 0) {
    Warn("host memory: hwloc cannot read the topology; not placed");
    return;
  }
  if (hwloc_get_nbobjs_by_type(topology->handle, HWLOC_OBJ_NUMANODE) > 1) {
    topology->nearest = hwloc_bitmap_alloc();
    if (topology->nearest == nullptr ||
        !FindNearest(topology->handle, gpu_ != nullptr ? gpu_->PciBus() : "",
                     topology->nearest)) {
      Warn(gpu_ != nullptr
               ? "host memory: the GPU's place is not known; not placed"
               : "host memory: the CPUs of this process are not known; not "
                 "placed");
      hwloc_bitmap_free(topology->nearest);
      topology->nearest = nullptr;
    }
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
  if (gpu_ != nullptr || IsRefused(bytes)) return;
  if (mlock2(address, bytes, MLOCK_ONFAULT) != 0) {
    Warn(absl::StrCat("host memory: not pinned (", std::strerror(errno),
                      "; `ulimit -l` sets the limit)"));
  }
}

bool Placement::Pin(std::byte* address, size_t bytes) {
  if (IsRefused(bytes)) return false;
  const absl::Status status = gpu_->Pin(address, bytes);
  if (status.ok()) return true;
  // Warnings of the same words are given once, so no address is named.
  Warn(absl::StrCat("host memory: not pinned, copies are slower (",
                    status.message(), ")"));
  return false;
}

void Placement::Unpin(std::byte* address) { gpu_->Unpin(address); }

bool Placement::IsRefused(size_t bytes) {
  if (FaultAt({.of = Callee::kHost,
               .call = "pin",
               .bytes = static_cast<int64_t>(bytes)}) == 0) {
    return false;
  }
  Warn("host memory: not pinned (refused by a test)");
  return true;
}

std::vector<std::string> Placement::warnings() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {warnings_.begin(), warnings_.end()};
}

void Placement::Warn(std::string text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  warnings_.insert(std::move(text));
}

void PlacedRegions::Place(const HostRegion& region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!placed_.insert(&region).second || placement_ == nullptr) return;
  placement_->Apply(region.data(), region.bytes());
}

void PlacedRegions::Forget(const HostRegion& region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  placed_.erase(&region);
}

}  // namespace tiercel
