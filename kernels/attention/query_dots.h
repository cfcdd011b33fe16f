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

// A tile's queries in shared memory, some elements of the head at a time:
// [element][query].
using QueryElements = Array<float, kPageTokens * QueryTile::kQueries>;

// Dot products of the tile's queries with the key of the thread's cell, each
// one chain of fma over head_dim; of cells that are not among `keys`, and of
// queries that the tile does not have, they mean nothing. The keys pass through
// `tile_of_keys` once, and the queries through `elements`.
TIERCEL_DEVICE void DotQueries(const Thread& t, KvTile& tile_of_keys,
                               QueryElements& elements, const QueryTile& tile,
                               const KvRows& keys,
                               float (&dots)[QueryTile::kQueries]) {
  constexpr int kQueries = QueryTile::kQueries;
  using Floats = Packet<float>;
#pragma unroll
  for (int i = 0; i < kQueries; ++i) dots[i] = 0.0f;
  for (int first = 0; first < keys.head_dim; first += t.count) {
    const int left = keys.head_dim - first;
    const int n = left < t.count ? left : t.count;
    Barrier();  // all are done with the elements before
    if (t.index < n) {
#pragma unroll
      for (int i = 0; i < kQueries; i += Floats::kSize) {
        Floats x;
#pragma unroll
        for (int j = 0; j < Floats::kSize; ++j) {
          const int own = i + j < tile.queries ? i + j : 0;
          x[j] = tile.q[tile.RowOf(own) * tile.q_stride +
                        tile.HeadOf(own) * keys.head_dim + first + t.index];
        }
        Store16(x, &elements[t.index * kQueries + i]);
      }
    }
    tile_of_keys.ForElements(t, keys, first, n, [&](int element, float k) {
#pragma unroll
      for (int i = 0; i < kQueries; i += Floats::kSize) {
        const Floats q = Load16<float>(&elements[element * kQueries + i]);
#pragma unroll
        for (int j = 0; j < Floats::kSize; ++j) {
          dots[i + j] = std::fma(q[j], k, dots[i + j]);
        }
      }
    });
  }
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_ATTENTION_QUERY_DOTS_H_
