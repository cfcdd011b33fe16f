// Lanes are positions, as in attention. A group of 16 keys is read for a tile
// of queries, and again, from the cache, for the next tile.

#include "kernels/attention/attention_cpu_rows.h"
#include "kernels/select/key_scores.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

// Stores a row's scores of the cells begin..end - 1 of a group. Those from
// `seen` on become -infinity.
TIERCEL_INLINE void StoreScores(F32x16 scores, int begin, int end, int64_t seen,
                                float* out) {
  if (begin == 0 && end == kLanes && seen >= kLanes) {
    Store(scores, out);
    return;
  }
  float lane[kLanes];
  Store(scores, lane);
  for (int i = begin; i < end; ++i) {
    out[i - begin] = i < seen ? lane[i] : -__builtin_inff();
  }
}

// Scores R queries from `query` on with cells begin..end - 1 of a group.
template <typename Source, int R>
void ScoresOfTile(const KeyBlock& b, int64_t query, const RowGroup& keys,
                  int group, int begin, int end) {
  const float* q[R];
  for (int r = 0; r < R; ++r) {
    q[r] = b.q + (query + r) / b.group * b.q_stride +
           (query + r) % b.group * b.head_dim;
  }
  F32x16 sum[R];
  KeyDots<Source>(keys, b.head_dim, q, sum);
  const int first = group * kLanes;
  for (int r = 0; r < R; ++r) {
    const int64_t row = (query + r) / b.group;
    StoreScores(sum[r] * Set1(b.scale), begin, end, b.seen + row - first,
                b.out + row * b.out_row_stride +
                    (query + r) % b.group * b.out_head_stride + first + begin -
                    b.begin);
  }
}

// Scores the last queries of a block, which are fewer than a full tile.
template <typename Source, int R>
void ScoresOfRest(const KeyBlock& b, int64_t query, const RowGroup& keys,
                  int group, int begin, int end) {
  if (b.rows * b.group - query == R) {
    ScoresOfTile<Source, R>(b, query, keys, group, begin, end);
  } else if constexpr (R > 1) {
    ScoresOfRest<Source, R - 1>(b, query, keys, group, begin, end);
  }
}

template <typename Source>
void ScoresOfBlock(const KeyBlock& b) {
  for (int group = b.begin / kLanes; group * kLanes < b.end; ++group) {
    const int first = group * kLanes;
    const int begin = b.begin > first ? b.begin - first : 0;
    const int end = b.end - first < kLanes ? b.end - first : kLanes;
    const RowGroup keys = RowsOf(b.k, b.k_row_bytes, group,
                                 ((1 << end) - 1) & ~((1 << begin) - 1));
    // Prefetches the next group, or the first of the next head in memory.
    Prefetch(b.k + int64_t{first + kLanes} * b.k_row_bytes,
             kLanes * b.k_row_bytes);
    int64_t query = 0;
    for (; query + kTileQueries <= b.rows * b.group; query += kTileQueries) {
      ScoresOfTile<Source, kTileQueries>(b, query, keys, group, begin, end);
    }
    ScoresOfRest<Source, kTileQueries - 1>(b, query, keys, group, begin, end);
  }
}

}  // namespace

void ComputeKeyBlock(const KeyBlock& b) {
  ForSource(b.type_k, [&](auto source) { ScoresOfBlock<decltype(source)>(b); });
}

}  // namespace tiercel::TIERCEL_ISA_NS
