#include <cmath>
#include <limits>

#include "kernels/attention/key_scores_body.h"
#include "kernels/attention/key_scores_params.h"
#include "kernels/device/device_lang.h"
#include "kernels/kv/kv_tile.h"

namespace tiercel {
namespace {

// A block scores the cells of one page of one KV head, a thread each, with
// eight queries at a time; the keys pass through shared memory once for these.
struct ScoreKeys {
  static constexpr int kMaxThreads = kPageTokens;
  static constexpr int kQueries = 8;
  struct Shared {
    KvTile keys;
  };
  KeyScoresParams p;
  int64_t k_row_bytes;

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& shared) const {
    const int kv_heads = p.layout.kv_heads;
    const int64_t first = p.first / kPageTokens;
    const int64_t items = ((p.last - 1) / kPageTokens - first + 1) * kv_heads;
    for (int64_t item = t.block; item < items; item += t.blocks) {
      const auto kv_head = static_cast<int>(item % kv_heads);
      const int64_t page = first + item / kv_heads;
      const int64_t queries = p.rows * (p.heads / kv_heads);
      for (int64_t query = 0; query < queries; query += kQueries) {
        const int64_t left = queries - query;
        ScoreQueries(t, shared, page, kv_head, query,
                     left < kQueries ? static_cast<int>(left) : kQueries);
      }
    }
  }

  // `n` queries from `query` on, of the rows and of each the heads that share
  // the KV head.
  TIERCEL_DEVICE void ScoreQueries(const Thread& t, Shared& shared,
                                   int64_t page, int kv_head, int64_t query,
                                   int n) const {
    const int head_dim = p.layout.head_dim;
    const int group = p.heads / p.layout.kv_heads;
    const int64_t start = page * kPageTokens;
    const int begin = p.first > start ? static_cast<int>(p.first - start) : 0;
    const int end = p.last - start < kPageTokens
                        ? static_cast<int>(p.last - start)
                        : kPageTokens;
    const std::byte* const keys = p.pages[page - p.first_page] +
                                  int64_t{kv_head} * kPageTokens * k_row_bytes;
    const bool own = t.index >= begin && t.index < end;

    const float* q[kQueries];
    for (int i = 0; i < kQueries; ++i) {
      const int64_t other = query + (i < n ? i : 0);
      q[i] = p.q + other / group * p.q_stride +
             (kv_head * group + other % group) * head_dim;
    }
    float dots[kQueries] = {};
    for (int d = 0; d < head_dim; d += KvTile::kElements) {
      const int size =
          head_dim - d < KvTile::kElements ? head_dim - d : KvTile::kElements;
      shared.keys.Fetch(t, p.layout.type_k, keys, k_row_bytes, begin, end, d,
                        size);
      if (!own) continue;
      for (int e = 0; e < size; ++e) {
        const float k = shared.keys.Get(t.index, e);
#pragma unroll
        for (int i = 0; i < kQueries; ++i) {
          dots[i] = std::fma(q[i][d + e], k, dots[i]);
        }
      }
    }
    if (!own) return;
    const int64_t position = start + t.index;
#pragma unroll
    for (int i = 0; i < kQueries; ++i) {
      if (i >= n) continue;
      const int64_t row = (query + i) / group;
      const int64_t head = kv_head * group + (query + i) % group;
      p.out[(row * p.heads + head) * p.out_stride + position - p.first] =
          position <= p.position + row
              ? dots[i] * p.scale
              : -std::numeric_limits<float>::infinity();
    }
  }
};

}  // namespace

int KeyScoresCuda(CUstream_st* stream, const KeyScoresParams& p) {
  const int64_t pages = (p.last - 1) / kPageTokens - p.first / kPageTokens + 1;
  return Launch(stream,
                TurnsFor(pages * p.layout.kv_heads, 1, ScoreKeys::kMaxThreads),
                ScoreKeys{p, p.layout.KRowBytes()});
}

}  // namespace tiercel
