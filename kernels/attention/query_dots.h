#ifndef TIERCEL_KERNELS_ATTENTION_QUERY_DOTS_H_
#define TIERCEL_KERNELS_ATTENTION_QUERY_DOTS_H_

#include <cmath>

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_tile.h"

namespace tiercel {

// Some queries of consecutive rows: of each row those of the heads that share a
// KV head, counted row by row.
struct QueryTile {
  static constexpr int kQueries = 8;

  const float* q;    // of row 0
  int64_t q_stride;  // floats from one row to the next
  int group;         // heads that share the KV head
  int kv_head;
  int64_t first;  // the first query
  int queries;    // at most kQueries

  constexpr int64_t RowOf(int i) const { return (first + i) / group; }
  constexpr int64_t HeadOf(int i) const {
    return kv_head * group + (first + i) % group;
  }
};

// Dot products of the tile's queries with the thread's cell, each one chain of
// fma over head_dim; of cells outside of begin..end - 1, and of queries that
// the tile does not have, they mean nothing. The keys, of which `keys` is cell
// 0's, pass through `shared` once.
TIERCEL_DEVICE void DotQueries(const Thread& t, KvTile& shared,
                               const QueryTile& tile, DType type,
                               const std::byte* keys, int64_t row_bytes,
                               int begin, int end, int head_dim,
                               float (&dots)[QueryTile::kQueries]) {
  const float* q[QueryTile::kQueries];
#pragma unroll
  for (int i = 0; i < QueryTile::kQueries; ++i) {
    const int own = i < tile.queries ? i : 0;
    q[i] =
        tile.q + tile.RowOf(own) * tile.q_stride + tile.HeadOf(own) * head_dim;
    dots[i] = 0.0f;
  }
  shared.ForPieces(t, type, keys, row_bytes, begin, end, head_dim,
                   [&](int d, int n) {
                     for (int e = 0; e < n; ++e) {
                       const float k = shared.Get(t.index, e);
#pragma unroll
                       for (int i = 0; i < QueryTile::kQueries; ++i) {
                         dots[i] = std::fma(q[i][d + e], k, dots[i]);
                       }
                     }
                   });
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_QUERY_DOTS_H_
