#ifndef TIERCEL_KERNELS_SELECT_QUERY_DOTS_H_
#define TIERCEL_KERNELS_SELECT_QUERY_DOTS_H_

#include <cmath>

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_tile.h"

namespace tiercel {

// Some queries of consecutive rows and of the heads that share a KV head. The
// queries are counted row by row.
struct QueryTile {
  const float* q;    // queries of row 0
  int64_t q_stride;  // floats from one row to the next
  int group;         // heads that share the KV head
  int kv_head;
  int64_t first;  // the first query
  int queries;    // queries in the tile

  constexpr int64_t RowOf(int i) const { return (first + i) / group; }
  constexpr int64_t HeadOf(int i) const {
    return kv_head * group + (first + i) % group;
  }
};

// A tile's queries (at most kQueries) in shared memory, some elements of the
// head at a time: [element][query].
template <int kQueries>
struct QueryElements {
  static constexpr int kPacket =
      kQueries < Packet<float>::kSize ? 1 : Packet<float>::kSize;
  static_assert(kQueries % kPacket == 0);

  Array<float, kPageTokens * kQueries> at;

  // Stores x, an element of queries i..i + kPacket - 1.
  TIERCEL_DEVICE void Put(int element, int i, const float (&x)[kPacket]) {
    float* const to = &at[element * kQueries + i];
    if constexpr (kPacket == 1) {
      *to = x[0];
    } else {
      Store16(Packet<float>{x[0], x[1], x[2], x[3]}, to);
    }
  }
  TIERCEL_DEVICE void Get(int element, int i, float (&x)[kPacket]) {
    const float* const from = &at[element * kQueries + i];
    if constexpr (kPacket == 1) {
      x[0] = *from;
    } else {
      const Packet<float> packet = Load16(from);
#pragma unroll
      for (int j = 0; j < kPacket; ++j) x[j] = packet[j];
    }
  }
};

// Computes the dot products of the tile's queries with the key of the thread's
// cell, each one chain of fma over head_dim. They are undefined for cells that
// are not among `keys` and queries that the tile does not have. The keys pass
// through `tile_of_keys` once, and the queries through `elements`.
template <int kQueries>
TIERCEL_DEVICE void DotQueries(const Thread& t, KvTile& tile_of_keys,
                               QueryElements<kQueries>& elements,
                               const QueryTile& tile, const KvRows& keys,
                               float (&dots)[kQueries]) {
  constexpr int kPacket = QueryElements<kQueries>::kPacket;
#pragma unroll
  for (int i = 0; i < kQueries; ++i) dots[i] = 0.0f;
  for (int first = 0; first < keys.head_dim; first += t.count) {
    const int left = keys.head_dim - first;
    const int n = left < t.count ? left : t.count;
    Barrier();  // all are done with the elements before
    if (t.index < n) {
#pragma unroll
      for (int i = 0; i < kQueries; i += kPacket) {
        float x[kPacket];
#pragma unroll
        for (int j = 0; j < kPacket; ++j) {
          const int own = i + j < tile.queries ? i + j : 0;
          x[j] = tile.q[tile.RowOf(own) * tile.q_stride +
                        tile.HeadOf(own) * keys.head_dim + first + t.index];
        }
        elements.Put(t.index, i, x);
      }
    }
    tile_of_keys.ForElements(t, keys, first, n, [&](int element, float k) {
#pragma unroll
      for (int i = 0; i < kQueries; i += kPacket) {
        float q[kPacket];
        elements.Get(element, i, q);
#pragma unroll
        for (int j = 0; j < kPacket; ++j) {
          dots[i + j] = std::fma(q[j], k, dots[i + j]);
        }
      }
    });
  }
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_QUERY_DOTS_H_
