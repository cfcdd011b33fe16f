// Bytes: K and V once a step, in tiles of 8 queries of a KV head; what pages
// give is written and read in the second-level cache.
// Operations: 4 f32 an element, position and query.
// Bound by: memory up to about 50 queries of a KV head (4090), 10 (H200); then
// by f32.

#include <cmath>
#include <limits>

#include "kernels/attention/attention_body.h"
#include "kernels/attention/query_dots.h"
#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_tile.h"
#include "kernels/number/reference_math.h"

namespace tiercel {
namespace {

// A block looks at one page of one KV head for eight queries, rows and heads
// that share it. K and V pass through shared memory. For scores a thread is a
// cell of the page, for sums of values it is an element of the head. No sum
// crosses threads but that of the weights, in the order of the contract.
struct ComputePages {
  static constexpr int kMaxThreads = kPageTokens;
  static constexpr int kQueries = QueryTile::kQueries;
  static constexpr int kSumLanes = 16;
  static constexpr float kUnseen = -1.0f;  // in the place of a weight
  static_assert(kQueries * kSumLanes == kMaxThreads);

  // So much that four blocks fit a processor of 100 KiB: the queries are done
  // with before there are weights, as K is before their maxima and those before
  // V.
  struct Shared {
    union {
      KvTile rows;
      Array<float, kWarpLanes> of_warps;
    };
    union {
      QueryElements queries;
      Array<float, kQueries * kPageTokens> weights;
    };
  };
  static_assert(4 * (sizeof(Shared) + 1024) <= 100 * 1024);
  AttentionWave w;
  int64_t k_row_bytes;
  int64_t v_row_bytes;
  int64_t tiles;  // of a KV head's queries

  // What the block is about.
  struct Tile {
    const AttentionWave::Page& page;
    int64_t page_index;
    int kv_head;
    int64_t query;  // the first, counted row by row
    int queries;    // at most kQueries
    int begin;      // cells that exist for one of the rows: begin..end - 1
    int end;
  };

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    const int kv_heads = w.layout.kv_heads;
    const int64_t queries = w.rows * (w.heads / kv_heads);
    for (int64_t item = t.block; item < w.num_pages * kv_heads * tiles;
         item += t.blocks) {
      const int64_t page = item / tiles / kv_heads;
      const int64_t query = item % tiles * kQueries;
      const int64_t left = queries - query;
      Tile tile = {w.pages[page],
                   page,
                   static_cast<int>(item / tiles % kv_heads),
                   query,
                   left < kQueries ? static_cast<int>(left) : kQueries,
                   0,
                   kPageTokens};
      const int64_t start = tile.page.start;
      const int64_t last = PositionOf(tile, tile.queries - 1);
      if (w.begin > start) tile.begin = static_cast<int>(w.begin - start);
      if (last < start + kPageTokens) {
        tile.end = last < start ? 0 : static_cast<int>(last - start) + 1;
      }
      if (tile.end == 0) {  // the page is in the future of all rows
        if (t.index < tile.queries) w.sum[Place(tile, t.index)] = 0.0f;
        continue;
      }
      ComputeTile(t, shared, tile);
    }
  }

  TIERCEL_DEVICE int Group() const { return w.heads / w.layout.kv_heads; }
  TIERCEL_DEVICE int64_t PositionOf(const Tile& tile, int i) const {
    return w.position + (tile.query + i) / Group();
  }
  // Query i of the tile among the rows' heads, and among the partial results.
  TIERCEL_DEVICE int64_t QueryOf(const Tile& tile, int i) const {
    const int64_t query = tile.query + i;
    return query / Group() * w.heads + tile.kv_head * Group() + query % Group();
  }
  TIERCEL_DEVICE int64_t Place(const Tile& tile, int i) const {
    return tile.page_index * w.rows * w.heads + QueryOf(tile, i);
  }

  TIERCEL_DEVICE void ComputeTile(const Thread& t, Shared& shared,
                                  const Tile& tile) const {
    float score[kQueries];
    Score(t, shared, tile, score);

    // 1. weights: of a query that sees a score that is not finite all are NaN,
    // so that no fault hides behind a weight of zero
    const int64_t position = tile.page.start + t.index;
    const bool fixed = InRanges(tile.kv_head, position);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      constexpr float kInf = std::numeric_limits<float>::infinity();
      const bool seen =
          i < tile.queries && Sees(tile, PositionOf(tile, i), position, fixed);
      const float own = !seen ? -kInf
                        : std::isfinite(score[i])
                            ? score[i]
                            : std::numeric_limits<float>::quiet_NaN();
      const float max = MaxOfBlock(t, own, shared.of_warps);
      shared.weights[i * kPageTokens + t.index] =
          seen ? ExpLane(score[i] - max) : kUnseen;
      if (t.index == 0 && i < tile.queries) {
        w.max[Place(tile, i)] = max == -kInf ? 0.0f : max;
      }
    }
    Barrier();

    // 2. their sums
    const int i = t.index / kSumLanes;
    float sum = 0.0f;
    for (int cell = t.index % kSumLanes; cell < kPageTokens;
         cell += kSumLanes) {
      const float weight = shared.weights[i * kPageTokens + cell];
      if (!(weight < 0.0f)) sum += weight;
    }
    for (int half = kSumLanes / 2; half > 0; half /= 2) {
      sum += ShuffleDown(kAllLanes, sum, half, kSumLanes);
    }
    if (t.index % kSumLanes == 0 && i < tile.queries) {
      w.sum[Place(tile, i)] = sum;
    }

    AddValues(t, shared, tile);
  }

  // Scores of the thread's cell with each query; of cells outside of the tile
  // they mean nothing.
  TIERCEL_DEVICE void Score(const Thread& t, Shared& shared, const Tile& tile,
                            float (&score)[kQueries]) const {
    const std::byte* const keys =
        tile.page.at + int64_t{tile.kv_head} * kPageTokens * k_row_bytes;
    DotQueries(
        t, shared.rows, shared.queries,
        {w.q, w.q_stride, Group(), tile.kv_head, tile.query, tile.queries},
        {w.layout.type_k, keys, k_row_bytes, w.layout.head_dim, tile.begin,
         tile.end},
        score);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) score[i] *= w.scale;
  }

  TIERCEL_DEVICE bool InRanges(int kv_head, int64_t position) const {
    if (w.shown == nullptr) return true;
    const AttentionWave::Shown& shown = w.shown[kv_head];
    for (int64_t i = 0; i < shown.ranges; ++i) {
      if (position < shown.bounds[2 * i]) return false;
      if (position < shown.bounds[2 * i + 1]) return true;
    }
    return false;
  }
  // Whether the row at position `row` sees `position`.
  TIERCEL_DEVICE bool Sees(const Tile& tile, int64_t row, int64_t position,
                           bool fixed) const {
    return position >= w.begin && position <= row &&
           (fixed || row - position < w.shown[tile.kv_head].recent);
  }

  // Weighted sums in the order of cells. A hidden cell may hold NaN, which a
  // weight of zero would let through.
  TIERCEL_DEVICE void AddValues(const Thread& t, Shared& shared,
                                const Tile& tile) const {
    const int head_dim = w.layout.head_dim;
    const std::byte* const values =
        tile.page.at + w.layout.kv_heads * kPageTokens * k_row_bytes +
        int64_t{tile.kv_head} * kPageTokens * v_row_bytes;
    for (int first = 0; first < head_dim; first += t.count) {
      const int left = head_dim - first;
      const int n = left < t.count ? left : t.count;
      float sums[kQueries] = {};
      shared.rows.ForCells(
          t,
          {w.layout.type_v, values, v_row_bytes, head_dim, tile.begin,
           tile.end},
          first, n, [&](int cell, const std::byte* row) {
            if (t.index >= n) return;
            const float v = KvElement(w.layout.type_v, row, t.index);
#pragma unroll
            for (int i = 0; i < kQueries; ++i) {
              const float weight = shared.weights[i * kPageTokens + cell];
              if (!(weight < 0.0f)) sums[i] = std::fma(weight, v, sums[i]);
            }
          });
      if (t.index >= n) continue;
#pragma unroll
      for (int i = 0; i < kQueries; ++i) {
        if (i >= tile.queries) continue;
        w.out[Place(tile, i) * head_dim + first + t.index] = sums[i];
      }
    }
  }
};

// A block folds the pages of one query in their order, an element of the head a
// thread; each of them follows the maximum and the sum by itself.
struct FoldWave {
  static constexpr int kMaxThreads = 128;
  struct Shared {};
  AttentionWave w;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    const int64_t queries = w.rows * w.heads;
    for (int64_t query = t.block; query < queries; query += t.blocks) {
      float max = 0.0f;
      float sum = 0.0f;
      for (int d = t.index; d < w.layout.head_dim; d += t.count) {
        max = w.first ? 0.0f : w.running_max[query];
        sum = w.first ? 0.0f : w.running_sum[query];
        FoldElement(query, d, &max, &sum);
      }
      Barrier();  // all have read what ran so far
      if (t.index != 0) continue;
      w.running_max[query] = max;
      w.running_sum[query] = sum;
    }
  }

  TIERCEL_DEVICE void FoldElement(int64_t query, int d, float* max,
                                  float* sum) const {
    float& result = w.result[query * w.layout.head_dim + d];
    float out = *sum == 0.0f ? 0.0f : result;
    for (int64_t page = 0; page < w.num_pages; ++page) {
      const int64_t place = page * w.rows * w.heads + query;
      const float page_sum = w.sum[place];
      if (page_sum == 0.0f) continue;
      const float page_max = w.max[place];
      const float page_out = w.out[place * w.layout.head_dim + d];
      if (*sum == 0.0f) {  // nothing yet: the page as it is
        *max = page_max;
        *sum = page_sum;
        out = page_out;
        continue;
      }
      const float new_max = *max > page_max ? *max : page_max;
      const float old_weight = ExpLane(*max - new_max);
      const float new_weight = ExpLane(page_max - new_max);
      *max = new_max;
      *sum = std::fma(*sum, old_weight, page_sum * new_weight);
      out = std::fma(out, old_weight, page_out * new_weight);
    }
    result = w.last ? out / *sum : out;
  }
};

}  // namespace

int AttentionWaveCuda(CUstream_st* stream, const AttentionWave& w) {
  using Compute = ComputePages;
  const int64_t queries = w.rows * (w.heads / w.layout.kv_heads);
  const int64_t tiles = (queries - 1) / Compute::kQueries + 1;
  const int error =
      Launch(stream,
             TurnsFor(w.num_pages * w.layout.kv_heads * tiles, 1,
                      Compute::kMaxThreads),
             Compute{w, w.layout.KRowBytes(), w.layout.VRowBytes(), tiles});
  if (error != 0) return error;
  return Launch(stream, TurnsFor(w.rows * w.heads, 1, FoldWave::kMaxThreads),
                FoldWave{w});
}

}  // namespace tiercel
