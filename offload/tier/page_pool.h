#ifndef TIERCEL_OFFLOAD_TIER_PAGE_POOL_H_
#define TIERCEL_OFFLOAD_TIER_PAGE_POOL_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/kv/kv_layout.h"
#include "offload/tier/host_region.h"
#include "offload/tier/memory_promise.h"
#include "offload/tier/slot_counter.h"

namespace tiercel {

// The KV pages of sequences that share a layout. A slot is one page in every
// layer. Memory comes in segments of slots; within a segment the pages of a
// layer are contiguous, so a sweep over a sequence is a few long runs per
// layer.
//
//   segment s, layer l:  [slots_per_segment][layout.PageBytes()]
//
// A pool on the device is one segment, which it takes when it is made.
//
// Slots are counted by references: a fork shares them until it writes.
// Not thread-safe: used by sessions that take turns.
class PagePool {
 public:
  PagePool(const KvLayout& layout, int layers, int64_t slots_per_segment);
  // Errors: out_of_memory.
  static absl::StatusOr<PagePool> OnDevice(const KvLayout& layout, int layers,
                                           int64_t slots, DeviceMemory& memory);

  // `promise` covers the pool's first `slots` slots; for every slot beyond
  // those the pool makes the promise grow.
  void Promise(MemoryPromise promise, int64_t slots);
  // Notes that all slots that were taken have been written.
  void NoteWritten();
  // Gives the system back the memory of free slots, if it is the host's and is
  // not locked for a link.
  void Trim();

  // Returns a slot with one reference and undefined contents. Errors:
  // out_of_memory; the pool is as before.
  absl::StatusOr<int64_t> Take();
  void AddReference(int64_t slot) { slots_.AddReference(slot); }
  void Release(int64_t slot) { slots_.Release(slot); }
  bool IsShared(int64_t slot) const { return slots_.IsShared(slot); }

  bool on_device() const { return !device_.empty(); }
  // A page as ops take it: on the device, or in host memory for a device that
  // computes in place.
  DevicePtr<std::byte> Page(int layer, int64_t slot);
  // A page of a pool in host memory, for the host to read and write.
  std::byte* HostPage(int layer, int64_t slot) const;
  // Copies a page of such a pool to another slot; no queued work may use
  // either. Errors: device_failed.
  absl::Status CopyPage(int layer, int64_t from, int64_t to);
  struct Location {
    const HostRegion* region;  // lives as long as the pool
    int64_t offset;
  };
  // The location of a page. The pool is in host memory.
  Location LocationOf(int layer, int64_t slot) const;

  const KvLayout& layout() const { return layout_; }
  int layers() const { return layers_; }
  int64_t slots_in_use() const { return slots_.in_use(); }
  // The slots that are free among those on the device, or else among those that
  // were promised.
  int64_t slots_left() const {
    const int64_t all = on_device() ? slots_per_segment_ : promised_slots_;
    return std::max<int64_t>(all - slots_in_use(), 0);
  }

 private:
  const KvLayout layout_;
  const int layers_;
  const int64_t slots_per_segment_;
  std::vector<std::vector<HostRegion>> segments_;  // [segment][layer]
  DeviceArray<std::byte> device_;                  // [layer][slot], or empty
  DeviceMemory* memory_ = nullptr;                 // holds device_
  MemoryPromise promise_;
  int64_t promised_slots_ = std::numeric_limits<int64_t>::max();
  int64_t planned_bytes_ = 0;  // bytes promised for each of the first slots
  SlotCounter slots_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_PAGE_POOL_H_
