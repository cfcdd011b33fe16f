// Bytes: the keys once, and a float written a key and query.
// Operations: 2 f32 an element of a key and query.
// Bound by: memory up to about 100 queries of a KV head (4090); then by f32.

#include <limits>

#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_tile.h"
#include "kernels/select/key_scores.h"
#include "kernels/select/query_dots.h"

namespace tiercel {
namespace {

// A block scores the cells of one page of one KV head, one thread per cell,
// with kQueries queries at a time, for which the keys pass through shared
// memory once. If kF16, keys are f16; else the layout has their type.
template <int kQueries, bool kF16>
struct ScoreKeys {
  static constexpr int kMaxThreads = kPageTokens;
  static constexpr int kBlocksAtOnce = 4;  // nvcc would spill at more
  struct Shared {
    KvTile keys;
    QueryElements<kQueries> queries;
  };
  KeyScoresParams p;
  DevicePages pages;
  int64_t k_row_bytes;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    const int kv_heads = p.layout.kv_heads;
    const int group = p.heads / kv_heads;
    const int64_t first = p.first / kPageTokens;
    const int64_t items = CountPages(p.first, p.last) * kv_heads;
    for (int64_t item = t.block; item < items; item += t.blocks) {
      QueryTile tile = {p.q.raw(), p.q_stride,
                        group,     static_cast<int>(item % kv_heads),
                        0,         kQueries};
      for (; tile.first < p.rows * group; tile.first += kQueries) {
        const int64_t left = p.rows * group - tile.first;
        if (left < kQueries) tile.queries = static_cast<int>(left);
        ScoreQueries(t, shared, first + item / kv_heads, tile);
      }
    }
  }

  TIERCEL_DEVICE void ScoreQueries(const Thread& t, Shared& shared,
                                   int64_t page, const QueryTile& tile) const {
    const PageCells cells = CellsOfPage(page, p.first, p.last);
    const std::byte* const keys =
        pages.At(page) + int64_t{tile.kv_head} * kPageTokens * k_row_bytes;
    float dots[kQueries];
    DotQueries(t, shared.keys, shared.queries, tile,
               {kF16 ? DType::kF16 : p.layout.type_k, keys, k_row_bytes,
                p.layout.head_dim, cells.begin, cells.end},
               dots);
    if (!cells.Has(t.index)) return;
    const int64_t position = cells.start + t.index;
    float* const out = p.out.raw() + (position - p.first);
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      if (i >= tile.queries) continue;
      const int64_t row = tile.RowOf(i);
      out[(row * p.heads + tile.HeadOf(i)) * p.out_stride] =
          position <= p.position + row
              ? dots[i] * p.scale
              : -std::numeric_limits<float>::infinity();
    }
  }
};

template <bool kF16>
int LaunchScores(CUstream_st* stream, const KeyScoresParams& p,
                 const DevicePages& pages) {
  const int64_t queries = p.rows * (p.heads / p.layout.kv_heads);
  const auto launch = [&]<int kQueries>() {
    using Score = ScoreKeys<kQueries, kF16>;
    const int64_t count = CountPages(p.first, p.last);
    return Launch(stream,
                  TurnsFor(count * p.layout.kv_heads, 1, Score::kMaxThreads),
                  Score{p, pages, p.layout.KRowBytes()});
  };
  return queries == 1   ? launch.template operator()<1>()
         : queries <= 4 ? launch.template operator()<4>()
                        : launch.template operator()<8>();
}

}  // namespace

TIERCEL_KERNEL_BODY(KeyScoresCuda, CUstream_st* stream,
                    const KeyScoresParams& p, const DevicePages& pages) {
  return p.layout.type_k == DType::kF16 ? LaunchScores<true>(stream, p, pages)
                                        : LaunchScores<false>(stream, p, pages);
}

}  // namespace tiercel
