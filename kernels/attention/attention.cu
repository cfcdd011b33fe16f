// Bytes: K and V once a step, in tiles of up to 8 queries of a KV head; what
// pages give is written and read in the second-level cache.
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

// The type of K and of V where a kernel is made for one; kAny: the layout says.
enum class OfType { kF16, kQ8, kAny };

// A block looks at one page of one KV head for up to kQueries queries, rows and
// heads that share it. K and V pass through shared memory. For scores a thread
// is a cell of the page, for sums of values it is an element of the head. No
// sum crosses threads but that of the weights, in the order of the contract.
template <int kQueries, OfType kOf>
struct ComputePages {
  static constexpr int kMaxThreads = kPageTokens;
  static constexpr int kBlocksAtOnce = kQueries == 1 ? 5 : 4;
  static constexpr int kSumLanes = 16;
  static constexpr float kUnseen = -1.0f;  // in the place of a weight
  static_assert(kQueries * kSumLanes <= kMaxThreads);

  // So much that four blocks fit a processor of 100 KiB: the queries are done
  // with before there are weights, as K is before their maxima and those before
  // V.
  struct Shared {
    union {
      KvTile rows;
      Array<float, kWarpLanes> of_warps;
    };
    union {
      QueryElements<kQueries> queries;
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

  TIERCEL_DEVICE DType TypeOf(DType in_layout) const {
    return kOf == OfType::kF16  ? DType::kF16
           : kOf == OfType::kQ8 ? DType::kQ8_0
                                : in_layout;
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
    for (int cell = t.index % kSumLanes; i < kQueries && cell < kPageTokens;
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
        {TypeOf(w.layout.type_k), keys, k_row_bytes, w.layout.head_dim,
         tile.begin, tile.end},
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
    const DType type = TypeOf(w.layout.type_v);
    const std::byte* const values =
        tile.page.at + w.layout.kv_heads * kPageTokens * k_row_bytes +
        int64_t{tile.kv_head} * kPageTokens * v_row_bytes;
    for (int first = 0; first < head_dim; first += t.count) {
      const int left = head_dim - first;
      const int n = left < t.count ? left : t.count;
      float sums[kQueries] = {};
      shared.rows.ForCells(
          t, {type, values, v_row_bytes, head_dim, tile.begin, tile.end}, first,
          n, [&](int cell, const std::byte* row) {
            if (t.index >= n) return;
            const float v = KvElement(type, row, t.index);
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
// thread. Maxima are the same in any order, so what each page and all before it
// weigh is found for many pages at once, a page a thread; only the sums are
// chains.
struct FoldWave {
  static constexpr int kMaxThreads = 128;
  static constexpr int kWarps = kMaxThreads / kWarpLanes;
  static constexpr int kAtOnce = 8;  // pages
  struct Shared {
    Array<float, kMaxThreads> sums;         // zero: nothing is seen
    Array<float, kMaxThreads> old_weights;  // of all that came before
    Array<float, kMaxThreads> new_weights;  // of the page
    Array<float, kWarps> of_warps;
  };
  AttentionWave w;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    const int64_t queries = w.rows * w.heads;
    for (int64_t query = t.block; query < queries; query += t.blocks) {
      // Every thread follows the maximum and the sum by itself.
      float max = w.first ? 0.0f : w.running_max[query];
      float sum = w.first ? 0.0f : w.running_sum[query];
      const float sum_before = sum;
      const float max_before = max;
      for (int first = 0; first < w.layout.head_dim; first += t.count) {
        const int d = first + t.index;
        max = max_before;
        sum = sum_before;
        FoldElement(t, shared, query, d, max, sum);
      }
      Barrier();  // all have read what ran so far
      if (t.index != 0) continue;
      w.running_max[query] = max;
      w.running_sum[query] = sum;
    }
  }

  // All threads of the block call it; those whose d is beyond the head help to
  // find weights.
  TIERCEL_DEVICE void FoldElement(const Thread& t, Shared& shared,
                                  int64_t query, int d, float& max,
                                  float& sum) const {
    const int head_dim = w.layout.head_dim;
    const int64_t stride = w.rows * w.heads;
    const bool own = d < head_dim;
    float* const result = &w.result[query * head_dim + (own ? d : 0)];
    float out = sum == 0.0f ? 0.0f : *result;
    for (int64_t begin = 0; begin < w.num_pages; begin += t.count) {
      const int64_t left = w.num_pages - begin;
      const int size = left < t.count ? static_cast<int>(left) : t.count;
      FindWeights(t, shared, query, begin, size, max, sum != 0.0f);
      const float* const page_out =
          &w.out[(begin * stride + query) * head_dim + (own ? d : 0)];
      for (int some = 0; some < size; some += kAtOnce) {
        // They are on their way together, while the chain waits for none.
        float values[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int page = some + i;
          const bool seen = page < size && shared.sums[page] != 0.0f;
          values[i] = seen ? page_out[page * stride * head_dim] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const int page = some + i;
          if (page >= size || shared.sums[page] == 0.0f) continue;
          const float page_sum = shared.sums[page];
          if (sum == 0.0f) {  // nothing yet: the page as it is
            sum = page_sum;
            out = values[i];
            continue;
          }
          const float old_weight = shared.old_weights[page];
          const float new_weight = shared.new_weights[page];
          sum = std::fma(sum, old_weight, page_sum * new_weight);
          out = std::fma(out, old_weight, values[i] * new_weight);
        }
      }
    }
    if (own) *result = w.last ? out / sum : out;
  }

  // Puts the sums and weights of `size` pages from `begin` on. `max` is the
  // greatest before them, if `is_seen` says that there was one, and becomes
  // that with them.
  TIERCEL_DEVICE void FindWeights(const Thread& t, Shared& shared,
                                  int64_t query, int64_t begin, int size,
                                  float& max, bool is_seen) const {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    const int64_t place = (begin + t.index) * w.rows * w.heads + query;
    const bool own = t.index < size;
    const float page_sum = own ? w.sum[place] : 0.0f;
    const float page_max = page_sum != 0.0f ? w.max[place] : kNone;

    // 1. the greatest up to each page, within its warp
    float upto = page_max;
    for (int lanes = 1; lanes < kWarpLanes; lanes *= 2) {
      upto = Greater(Before(t, upto, lanes), upto);
    }
    Barrier();  // all are done with the weights before
    if (t.lane() == kWarpLanes - 1) shared.of_warps[t.warp()] = upto;
    float before = Before(t, upto, 1);
    if (t.lane() == 0) before = kNone;
    Barrier();

    // 2. with the warps before, and what came before all of them
    float all = is_seen ? max : kNone;
    float carried = all;
    for (int warp = 0; warp < kWarps; ++warp) {
      if (warp == t.warp()) carried = all;
      all = Greater(all, shared.of_warps[warp]);
    }
    before = Greater(carried, before);
    const float with = Greater(before, page_max);
    shared.sums[t.index] = page_sum;
    shared.old_weights[t.index] = ExpLane(before - with);
    shared.new_weights[t.index] = ExpLane(page_max - with);
    max = all;
    Barrier();
  }

  // The value of the lane so many before; a lane without one gets its own.
  static TIERCEL_DEVICE float Before(const Thread& t, float value, int lanes) {
    return Shuffle(kAllLanes, value,
                   t.lane() < lanes ? t.lane() : t.lane() - lanes);
  }
  // For numbers alone: a maximum that is NaN has a sum that is NaN too.
  static TIERCEL_DEVICE float Greater(float a, float b) {
    return a > b ? a : b;
  }
};

template <OfType kOf>
int LaunchPages(CUstream_st* stream, const AttentionWave& w) {
  const int64_t queries = w.rows * (w.heads / w.layout.kv_heads);
  const auto launch = [&]<int kQueries>() {
    using Compute = ComputePages<kQueries, kOf>;
    const int64_t tiles = (queries - 1) / kQueries + 1;
    return Launch(
        stream,
        TurnsFor(w.num_pages * w.layout.kv_heads * tiles, 1,
                 Compute::kMaxThreads),
        Compute{w, w.layout.KRowBytes(), w.layout.VRowBytes(), tiles});
  };
  return queries == 1   ? launch.template operator()<1>()
         : queries <= 4 ? launch.template operator()<4>()
                        : launch.template operator()<8>();
}

}  // namespace

int AttentionWaveCuda(CUstream_st* stream, const AttentionWave& w) {
  const DType k = w.layout.type_k;
  const DType v = w.layout.type_v;
  const int error =
      k == DType::kF16 && v == k    ? LaunchPages<OfType::kF16>(stream, w)
      : k == DType::kQ8_0 && v == k ? LaunchPages<OfType::kQ8>(stream, w)
                                    : LaunchPages<OfType::kAny>(stream, w);
  if (error != 0) return error;
  return Launch(stream, TurnsFor(w.rows * w.heads, 1, FoldWave::kMaxThreads),
                FoldWave{w});
}

}  // namespace tiercel
