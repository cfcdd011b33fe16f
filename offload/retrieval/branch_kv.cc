#include "offload/retrieval/branch_kv.h"

#include <algorithm>

#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<KvPages> BranchKv::BeginLayer(int layer, Cancelled cancelled) {
  ASSIGN_OR_RETURN(KvPages pages, whole_.BeginLayer(layer, cancelled));
  const int64_t at = whole_.CellOf(place_.at);
  const int64_t cells = whole_.CellOf(place_.cells);
  const auto heads = static_cast<size_t>(pages.layout.kv_heads);
  ranges_.resize(heads);
  views_.clear();
  for (size_t head = 0; head < heads; ++head) {
    std::vector<PositionRange>& ranges = ranges_[head];
    ranges.clear();
    for (const PositionRange& range : pages.view[head].fixed) {
      const PositionRange before = {range.begin, std::min(range.end, at)};
      if (before.begin < before.end) ranges.push_back(before);
    }
    ranges.push_back({cells, kAllPositions});
    views_.push_back({.fixed = ranges, .recent = 1});
  }
  pages.end = cells + place_.rows;
  pages.view = views_.data();
  return pages;
}

}  // namespace tiercel
