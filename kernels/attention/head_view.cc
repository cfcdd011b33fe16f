#include "kernels/attention/head_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/kv/kv_layout.h"
#include "lib/status/error.h"

namespace tiercel {

absl::Status CheckHeadView(const HeadView& view, int head) {
  if (view.recent < 1) {
    return UsageError("invalid_view",
                      absl::StrCat("view of KV head ", head, ": recent is ",
                                   view.recent, "; a row must see itself"));
  }
  int64_t end = 0;
  for (const PositionRange& range : view.fixed) {
    if (range.begin < end || range.end <= range.begin) {
      return UsageError(
          "invalid_view",
          absl::StrCat("view of KV head ", head, ": positions ", range.begin,
                       " to ", range.end, " (exclusive) after ", end,
                       "; need sorted, disjoint ranges, none of them empty"));
    }
    end = range.end;
  }
  return absl::OkStatus();
}

void MarkSeenPages(const HeadView& view, int64_t begin, int64_t position,
                   int64_t rows, int64_t first_page, std::span<uint8_t> seen) {
  const int64_t end = position + rows;
  const auto mark = [&](const PositionRange& range) {
    const int64_t from = std::max(range.begin, begin);
    const int64_t to = std::min(range.end, end);
    if (from >= to) return;
    const auto at = seen.begin() - first_page;
    std::fill(at + from / kPageTokens, at + (to - 1) / kPageTokens + 1,
              uint8_t{1});
  };
  for (const PositionRange& range : view.fixed) mark(range);
  // The windows of the rows leave no gaps, as each is one position further.
  mark({.begin = position - view.recent + 1, .end = end});
}

}  // namespace tiercel
