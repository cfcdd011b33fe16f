#ifndef TIERCEL_KERNELS_ATTENTION_ATTENTION_PAGES_H_
#define TIERCEL_KERNELS_ATTENTION_ATTENTION_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_body.h"

namespace tiercel {

// The pages that a call of Attention reads, and the cells of a page.

// Pages in order: `count` from `first` on, or those of a list.
struct PageList {
  int64_t first = 0;
  const int64_t* listed = nullptr;
  int64_t count = 0;

  int64_t At(int64_t i) const {
    return listed == nullptr ? first + i : listed[i];
  }
  // Returns the `size` pages from number `begin` on.
  PageList Part(int64_t begin, int64_t size) const;
  // The number of pages that are not after `page`.
  int64_t CountUpTo(int64_t page) const;
};

// The number of pages from the first position that exists to that of row `row`.
int64_t PagesUpTo(const AttentionParams& p, int64_t row);

// The pages of the part that rows row..row + rows - 1 see in some KV head,
// without those that the views hide from all of them. If there is a view, the
// list is made in `room`, which has PageListBytes.
PageList SeenPages(const AttentionParams& p, int64_t row, int64_t rows,
                   std::byte* room);
size_t PageListBytes(const AttentionParams& p);

// Checks that the caller gave all of `pages`. Errors: invalid_position,
// invalid_page.
absl::Status CheckPages(const AttentionParams& p, const PageList& pages);

// The cells of page `page` that are in the ranges, which are sorted and
// disjoint.
CellSet CellsOf(std::span<const PositionRange> ranges, int64_t page);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_ATTENTION_PAGES_H_
