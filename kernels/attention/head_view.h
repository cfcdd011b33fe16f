#ifndef TIERCEL_KERNELS_ATTENTION_HEAD_VIEW_H_
#define TIERCEL_KERNELS_ATTENTION_HEAD_VIEW_H_

#include <cstdint>
#include <limits>
#include <span>

#include "absl/status/status.h"

namespace tiercel {

// Positions begin <= j < end.
struct PositionRange {
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const PositionRange&, const PositionRange&) = default;
};

inline constexpr int64_t kAllPositions = std::numeric_limits<int64_t>::max();

// The positions that rows see of one KV head. If positions exist from `begin`
// on, the row at position t sees position j if
//
//   begin <= j <= t   and   (j is in `fixed`   or   j > t - recent)
//
// so that a row's view follows from its position alone, not from the rows that
// are computed with it.
struct HeadView {
  std::span<const PositionRange> fixed;  // sorted, disjoint, none empty
  int64_t recent = kAllPositions;        // at least 1: a row sees itself
};

// Errors: invalid_view, naming KV head `head`.
absl::Status CheckHeadView(const HeadView& view, int head);

// Sets seen[i] if some row at position..position + rows - 1 sees a position of
// page first_page + i; other elements are not changed. `seen` ends at the page
// of the last row or after it; positions exist from `begin` on, which is not
// before first_page.
void MarkSeenPages(const HeadView& view, int64_t begin, int64_t position,
                   int64_t rows, int64_t first_page, std::span<uint8_t> seen);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_HEAD_VIEW_H_
