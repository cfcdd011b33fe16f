#ifndef TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_ROWS_H_
#define TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_ROWS_H_

// Functions by which attention reads the rows of a page's K and V. For
// op_cpu.cc files only, as simd.h says.

#include "kernels/attention/attention_cpu_cells.h"
#include "kernels/kv/kv_lanes.h"

namespace tiercel::TIERCEL_ISA_NS {

TIERCEL_INLINE int Padded(int head_dim) {
  return (head_dim + kLanes - 1) / kLanes * kLanes;
}

// The number of queries that are multiplied with K at the same time: enough
// independent chains to hide the latency of a multiply-add, but few enough to
// stay in the registers.
#if defined(__AVX512F__)
constexpr int kTileQueries = 8;
#elif defined(__AVX2__)
constexpr int kTileQueries = 6;
#else
constexpr int kTileQueries = 2;
#endif

// Prefetches `bytes` from p on and returns their end. While K is computed on, V
// is prefetched, and while V is, the next block's K: each run of bytes is too
// short for the hardware prefetcher to predict the next.
TIERCEL_INLINE const std::byte* Prefetch(const std::byte* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
  return p + bytes;
}

// A group of 16 rows of K. Rows that no query sees may hold anything, so a row
// that is seen stands in for them.
struct RowGroup {
  const std::byte* row[kLanes];
};
TIERCEL_INLINE RowGroup RowsOf(const std::byte* k, int64_t row_bytes, int group,
                               int lanes) {
  RowGroup rows;
  const std::byte* const first = k + int64_t{group} * kLanes * row_bytes;
  if (lanes == kAllLanes) {
    for (int i = 0; i < kLanes; ++i) rows.row[i] = first + i * row_bytes;
    return rows;
  }
  const int seen = __builtin_ctz(static_cast<unsigned>(lanes));
  for (int i = 0; i < kLanes; ++i) {
    rows.row[i] = first + ((lanes >> i & 1) != 0 ? i : seen) * row_bytes;
  }
  return rows;
}

// Computes the dot products of R queries with a group of rows of K. Each is one
// chain of fma over the elements.
template <typename Source, int R>
TIERCEL_INLINE void KeyDots(const RowGroup& group, int head_dim,
                            const float* const (&q)[R], F32x16 (&sum)[R]) {
  for (int r = 0; r < R; ++r) sum[r] = Zero();
  F32x16 column[kLanes];
  int d = 0;
  for (; d + kLanes <= head_dim; d += kLanes) {
    ReadColumns<Source>(group.row, d, column);
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        sum[r] = Fma(Set1(q[r][d + j]), column[j], sum[r]);
      }
    }
  }
  if (d < head_dim) {
    ReadColumns<TailOf<Source>>(group.row, d, column);
    for (int j = 0; j < 8; ++j) {
      for (int r = 0; r < R; ++r) {
        sum[r] = Fma(Set1(q[r][d + j]), column[j], sum[r]);
      }
    }
  }
}

// Expands K of the cells that are seen to [group of 16 cells][padded
// head_dim][16].
template <typename Source>
void ExpandK(const AttentionBlock& b, const CellSet& seen, float* out) {
  const int padded = Padded(b.head_dim);
  for (int g = 0; g < kGroups; ++g) {
    const int lanes = LanesOf(seen, g);
    if (lanes == 0) continue;
    const RowGroup group = RowsOf(b.k, b.k_row_bytes, g, lanes);
    Prefetch(b.v + int64_t{g} * kLanes * b.v_row_bytes, kLanes * b.v_row_bytes);
    float* to = out + g * kLanes * padded;
    for (int d = 0; d < padded; d += kLanes) {
      F32x16 column[kLanes];
      if (d + kLanes <= b.head_dim) {
        ReadColumns<Source>(group.row, d, column);
      } else {
        ReadColumns<TailOf<Source>>(group.row, d, column);
      }
      for (int i = 0; i < kLanes; ++i) Store(column[i], to + (d + i) * kLanes);
    }
  }
}

// Expands V of the cells that are seen to [cell][padded head_dim].
template <typename Source>
void ExpandV(const AttentionBlock& b, const CellSet& seen, float* out) {
  const int padded = Padded(b.head_dim);
  const std::byte* soon = b.next_k;
  for (int cell = NextIn(seen, 0); cell < kPageTokens;
       cell = NextIn(seen, cell)) {
    for (const int end = NextOut(seen, cell); cell < end; ++cell) {
      if (soon != nullptr) soon = Prefetch(soon, b.k_row_bytes);
      const std::byte* row = b.v + cell * b.v_row_bytes;
      float* to = out + cell * padded;
      int d = 0;
      for (; d + kLanes <= b.head_dim; d += kLanes) {
        Store(Source::Read(row, d), to + d);
      }
      if (d < padded) Store(TailOf<Source>::Read(row, d), to + d);
    }
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS

#endif  // TIERCEL_KERNELS_ATTENTION_ATTENTION_CPU_ROWS_H_
