#include "kernels/attention/attention_pages.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/kv/page_range.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

PageList PageList::Part(int64_t begin, int64_t size) const {
  return {.first = first + begin,
          .listed = listed == nullptr ? nullptr : listed + begin,
          .count = size};
}

int64_t PageList::CountUpTo(int64_t page) const {
  if (listed == nullptr) return std::clamp(page + 1 - first, int64_t{0}, count);
  return std::upper_bound(listed, listed + count, page) - listed;
}

int64_t PagesUpTo(const AttentionParams& p, int64_t row) {
  return (p.position + row) / kPageTokens - p.begin / kPageTokens + 1;
}

size_t PageListBytes(const AttentionParams& p) {
  return p.view == nullptr ? 0
                           : static_cast<size_t>(PagesUpTo(p, p.rows - 1)) *
                                 (sizeof(int64_t) + sizeof(uint8_t));
}

PageList SeenPages(const AttentionParams& p, int64_t row, int64_t rows,
                   std::byte* room) {
  const int64_t first = p.begin / kPageTokens;
  const int64_t pages = PagesUpTo(p, row + rows - 1);
  if (p.view == nullptr) {
    const int64_t begin =
        p.part.is_whole() ? first : std::max(first, p.part.first);
    const int64_t end =
        p.part.is_whole() ? first + pages : std::min(first + pages, p.part.end);
    return {.first = begin, .listed = nullptr, .count = end - begin};
  }
  auto* const listed = reinterpret_cast<int64_t*>(room);
  const std::span<uint8_t> seen(reinterpret_cast<uint8_t*>(listed + pages),
                                static_cast<size_t>(pages));
  std::memset(seen.data(), 0, seen.size());
  for (int head = 0; head < p.layout.kv_heads; ++head) {
    MarkSeenPages(p.view[head], p.begin, p.position + row, rows, first, seen);
  }
  int64_t count = 0;
  for (int64_t i = 0; i < pages; ++i) {
    if (seen[static_cast<size_t>(i)] != 0) listed[count++] = first + i;
  }
  return {.first = first, .listed = listed, .count = count};
}

absl::Status CheckPages(const AttentionParams& p, const PageList& pages) {
  for (int64_t i = 0; i < pages.count; ++i) {
    const int64_t page = pages.At(i);
    const DevicePtr<std::byte> start = p.pages[page - p.first_page];
    if (start == nullptr) {
      return UsageError(
          "invalid_position",
          absl::StrCat("Attention: page ", page,
                       " is null, and rows at positions ", p.position, " to ",
                       p.position + p.rows - 1, " see it"));
    }
    RETURN_IF_ERROR(CheckPageStart("Attention", start, page));
  }
  return absl::OkStatus();
}

CellSet CellsOf(std::span<const PositionRange> ranges, int64_t page) {
  constexpr int64_t kWordCells = 64;
  const int64_t start = page * kPageTokens;
  auto range = std::upper_bound(ranges.begin(), ranges.end(), start,
                                [](int64_t position, const PositionRange& r) {
                                  return position < r.end;
                                });
  CellSet cells = {};
  for (; range != ranges.end() && range->begin < start + kPageTokens; ++range) {
    int64_t word_start = start;
    for (uint64_t& word : cells.word) {
      // The cells of the word before a position.
      const auto before = [word_start](int64_t position) {
        const int64_t n = position - word_start;
        return n <= 0            ? 0
               : n >= kWordCells ? ~uint64_t{0}
                                 : (uint64_t{1} << n) - 1;
      };
      word |= before(range->end) & ~before(range->begin);
      word_start += kWordCells;
    }
  }
  return cells;
}

}  // namespace tiercel
