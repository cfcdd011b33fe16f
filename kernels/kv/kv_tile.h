#ifndef TIERCEL_KERNELS_KV_KV_TILE_H_
#define TIERCEL_KERNELS_KV_KV_TILE_H_

#include <cstddef>

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_element.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

// Some elements of the rows of one KV head in one page, in shared memory.
struct KvTile {
  static constexpr int kElements = 32;
  static constexpr int kPitch = kElements + 1;  // lanes read different banks

  Array<float, kPageTokens * kPitch> at;  // [cell][element]

  TIERCEL_DEVICE float Get(int cell, int element) {
    return at[cell * kPitch + element];
  }

  // Fetches n elements, at most kElements, from element d on, of the cells
  // begin..end - 1; `rows` is that of cell 0. All threads of the block call it.
  TIERCEL_DEVICE void Fetch(const Thread& t, DType type, const std::byte* rows,
                            int64_t row_bytes, int begin, int end, int d,
                            int n) {
    Barrier();  // all are done with what was here before
    for (int i = t.index; i < (end - begin) * kElements; i += t.count) {
      const int cell = begin + i / kElements;
      const int e = i % kElements;
      if (e >= n) continue;
      at[cell * kPitch + e] = KvElement(type, rows + cell * row_bytes, d + e);
    }
    Barrier();
  }

  // Fetches all head_dim elements, a piece at a time, and calls body(d, n)
  // while elements d..d + n - 1 are here.
  template <typename Body>
  TIERCEL_DEVICE void ForPieces(const Thread& t, DType type,
                                const std::byte* rows, int64_t row_bytes,
                                int begin, int end, int head_dim,
                                const Body& body) {
    for (int d = 0; d < head_dim; d += kElements) {
      const int n = head_dim - d < kElements ? head_dim - d : kElements;
      Fetch(t, type, rows, row_bytes, begin, end, d, n);
      body(d, n);
    }
  }
};

// The cells of one page that are among positions first..last - 1.
struct PageCells {
  int64_t start;  // position of cell 0
  int begin;
  int end;

  constexpr bool Has(int cell) const { return cell >= begin && cell < end; }
};
TIERCEL_DEVICE PageCells CellsOfPage(int64_t page, int64_t first,
                                     int64_t last) {
  const int64_t start = page * kPageTokens;
  return {start, first > start ? static_cast<int>(first - start) : 0,
          last - start < kPageTokens ? static_cast<int>(last - start)
                                     : kPageTokens};
}

// Pages that hold some of positions first..last - 1, of which there are some.
constexpr int64_t CountPages(int64_t first, int64_t last) {
  return (last - 1) / kPageTokens - first / kPageTokens + 1;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_TILE_H_
