#ifndef TIERCEL_OFFLOAD_TIER_PAGE_POOL_H_
#define TIERCEL_OFFLOAD_TIER_PAGE_POOL_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/machine/device_memory.h"
#include "offload/tier/host_region.h"
#include "offload/tier/memory_promise.h"
#include "offload/tier/slot_counter.h"

namespace tiercel {

// The KV pages of sequences that share a layout. A slot is one page in every
// layer. Slots come in segments; within a segment the pages of a layer are
// contiguous, so a sweep over a sequence is a few long runs per layer.
//
//   segment s, layer l:  [slots_per_segment][layout.PageBytes()]
//
// An unmapped pool has no addresses: its pages are reached by copying. A pool
// on the device is one segment, which it takes when it is made.
//
// Slots are counted references: a fork shares them until it writes.
// Not thread-safe: used by sessions that take turns.
class PagePool {
 public:
  enum class Access { kMapped, kUnmapped };
  PagePool(const KvLayout& layout, int layers, int64_t slots_per_segment,
           Access access = Access::kMapped);
  // Errors: out_of_memory.
  static absl::StatusOr<PagePool> OnDevice(const KvLayout& layout, int layers,
                                           int64_t slots, DeviceMemory& memory);

  // Gives the pool's first `slots` slots the memory of `promise`; for slots
  // beyond those the pool asks for more.
  void Promise(MemoryPromise promise, int64_t slots);
  // Notes that the slots that are taken have been written.
  void NoteWritten();

  // A slot with one reference and undefined contents.
  // Errors: out_of_memory; the pool is as before.
  absl::StatusOr<int64_t> Take();
  void AddReference(int64_t slot) { slots_.AddReference(slot); }
  void Release(int64_t slot) { slots_.Release(slot); }
  bool IsShared(int64_t slot) const { return slots_.IsShared(slot); }

  bool on_device() const { return !device_.empty(); }
  std::byte* Page(int layer, int64_t slot);  // of a pool with addresses
  // Copies a page of such a pool to another slot; no work that is queued uses
  // either. Errors: device_failed.
  absl::Status CopyPage(int layer, int64_t from, int64_t to);
  struct Location {
    const HostRegion* region;  // as long as the pool lives
    int64_t offset;
  };
  Location LocationOf(int layer,
                      int64_t slot) const;  // of a pool in host memory

  const KvLayout& layout() const { return layout_; }
  int layers() const { return layers_; }
  int64_t slots_in_use() const { return slots_.in_use(); }

 private:
  const KvLayout layout_;
  const int layers_;
  const int64_t slots_per_segment_;
  const Access access_;
  std::vector<std::vector<HostRegion>> segments_;  // [segment][layer]
  DeviceArray<std::byte> device_;                  // [layer], or none
  DeviceMemory* memory_ = nullptr;                 // of device_
  MemoryPromise promise_;
  int64_t promised_slots_ = std::numeric_limits<int64_t>::max();
  int64_t planned_bytes_ = 0;  // of one of those that were promised first
  SlotCounter slots_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_PAGE_POOL_H_
