#include "offload/page/page_pool.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace tiercel {

PagePool::PagePool(const KvLayout& layout, int layers,
                   int64_t slots_per_segment, Access access)
    : layout_(layout),
      layers_(layers),
      slots_per_segment_(std::max<int64_t>(1, slots_per_segment)),
      access_(access) {}

absl::StatusOr<int64_t> PagePool::Take() {
  if (free_.empty()) {
    std::vector<HostRegion> segment;
    for (int layer = 0; layer < layers_; ++layer) {
      const auto bytes =
          static_cast<size_t>(slots_per_segment_ * layout_.PageBytes());
      absl::StatusOr<HostRegion> region =
          access_ == Access::kMapped ? HostRegion::Reserve(bytes)
                                     : HostRegion::ReserveUnmapped(bytes);
      if (!region.ok()) return region.status();
      segment.push_back(*std::move(region));
    }
    const auto first = static_cast<int64_t>(references_.size());
    segments_.push_back(std::move(segment));
    references_.resize(references_.size() + Index(slots_per_segment_), 0);
    for (int64_t i = slots_per_segment_ - 1; i >= 0; --i) {
      free_.push_back(first + i);
    }
  }
  const int64_t slot = free_.back();
  free_.pop_back();
  references_[Index(slot)] = 1;
  return slot;
}

void PagePool::Release(int64_t slot) {
  if (--references_[Index(slot)] > 0) return;
  // Kept sorted so that a sequence takes neighbouring slots: runs stay long.
  free_.insert(std::upper_bound(free_.begin(), free_.end(), slot,
                                std::greater<int64_t>()),
               slot);
}

std::byte* PagePool::Page(int layer, int64_t slot) const {
  const Place place = PlaceOf(layer, slot);
  return place.region->data() + place.offset;
}

PagePool::Place PagePool::PlaceOf(int layer, int64_t slot) const {
  return {&segments_[Index(slot / slots_per_segment_)][Index(layer)],
          slot % slots_per_segment_ * layout_.PageBytes()};
}

}  // namespace tiercel
