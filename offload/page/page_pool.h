#ifndef TIERCEL_OFFLOAD_PAGE_PAGE_POOL_H_
#define TIERCEL_OFFLOAD_PAGE_PAGE_POOL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "offload/tier/host_region.h"

namespace tiercel {

// The KV pages of sequences that share a layout. A slot is one page in every
// layer. Slots come in segments; within a segment the pages of a layer are
// contiguous, so a sweep over a sequence is a few long runs per layer.
//
//   segment s, layer l:  [slots_per_segment][layout.PageBytes()]
//
// An unmapped pool has no addresses: its pages are reached by copying.
//
// Slots are counted references: a fork shares them until it writes.
// Not thread-safe: used by sessions that take turns.
class PagePool {
 public:
  enum class Access { kMapped, kUnmapped };
  PagePool(const KvLayout& layout, int layers, int64_t slots_per_segment,
           Access access = Access::kMapped);

  // A slot with one reference and undefined contents.
  // Errors: out_of_memory; the pool is as before.
  absl::StatusOr<int64_t> Take();
  void AddReference(int64_t slot) { ++references_[Index(slot)]; }
  void Release(int64_t slot);  // frees the slot with its last reference
  bool IsShared(int64_t slot) const { return references_[Index(slot)] > 1; }

  std::byte* Page(int layer, int64_t slot) const;  // of a mapped pool
  struct Place {
    const HostRegion* region;  // as long as the pool lives
    int64_t offset;
  };
  Place PlaceOf(int layer, int64_t slot) const;

  const KvLayout& layout() const { return layout_; }
  int layers() const { return layers_; }
  int64_t slots_in_use() const {
    return static_cast<int64_t>(references_.size() - free_.size());
  }

 private:
  static size_t Index(int64_t slot) { return static_cast<size_t>(slot); }

  const KvLayout layout_;
  const int layers_;
  const int64_t slots_per_segment_;
  const Access access_;
  std::vector<std::vector<HostRegion>> segments_;  // [segment][layer]
  std::vector<int> references_;                    // [slot]
  std::vector<int64_t> free_;                      // lowest slot last
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PAGE_PAGE_POOL_H_
