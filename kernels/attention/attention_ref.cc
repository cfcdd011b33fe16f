#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_body.h"
#include "kernels/kv/kv_row.h"
#include "kernels/number/reference_math.h"

namespace tiercel {
namespace {

// The result of one query over one page, or over all pages so far.
struct State {
  float max = 0.0f;
  float sum = 0.0f;
  std::vector<float> out;
};

float Score(const float* q, const std::vector<float>& k, float scale) {
  float dot = 0.0f;
  for (size_t d = 0; d < k.size(); ++d) dot = std::fma(q[d], k[d], dot);
  return dot * scale;
}

// Returns true if the row at position t sees position j <= t.
bool Sees(const AttentionParams& p, int kv_head, int64_t t, int64_t j) {
  if (p.view == nullptr) return true;
  const HeadView& view = p.view[kv_head];
  if (t - j < view.recent) return true;
  const auto range =
      std::upper_bound(view.fixed.begin(), view.fixed.end(), j,
                       [](int64_t position, const PositionRange& r) {
                         return position < r.end;
                       });
  return range != view.fixed.end() && range->begin <= j;
}

// The result of one query over the cells `cells` of one page.
State OfPage(const AttentionParams& p, const float* q, int kv_head,
             const std::byte* page, const std::vector<int>& cells) {
  const int dim = p.layout.head_dim;
  std::vector<float> row(static_cast<size_t>(dim));
  float score[kPageTokens];
  State block{-std::numeric_limits<float>::infinity(), 0.0f,
              std::vector<float>(static_cast<size_t>(dim), 0.0f)};
  bool finite = true;
  for (int j : cells) {
    KvRowToF32(p.layout.type_k, page + p.layout.KOffset(kv_head, j), dim,
               row.data());
    score[j] = Score(q, row, p.scale);
    finite = finite && std::isfinite(score[j]);
    block.max = std::fmax(block.max, score[j]);
  }
  // A fault in q or in a key must not hide behind a weight of zero.
  if (!finite) block.max = std::numeric_limits<float>::quiet_NaN();

  float lane[16] = {};
  for (int j : cells) {
    const float weight = ExpLane(score[j] - block.max);
    lane[j % 16] += weight;
    KvRowToF32(p.layout.type_v, page + p.layout.VOffset(kv_head, j), dim,
               row.data());
    for (size_t d = 0; d < row.size(); ++d) {
      block.out[d] = std::fma(weight, row[d], block.out[d]);
    }
  }
  block.sum = SumLanes(lane);
  return block;
}

void Fold(const State& block, State& all) {
  const float max = all.max > block.max ? all.max : block.max;
  const float old_weight = ExpLane(all.max - max);
  const float new_weight = ExpLane(block.max - max);
  all.max = max;
  all.sum = std::fma(all.sum, old_weight, block.sum * new_weight);
  for (size_t d = 0; d < all.out.size(); ++d) {
    all.out[d] = std::fma(all.out[d], old_weight, block.out[d] * new_weight);
  }
}

}  // namespace

void AttentionReference(const AttentionParams& p) {
  const int group = p.heads / p.layout.kv_heads;
  const AttentionPart& part = p.part;
  const bool ends = part.is_whole() || part.end == AttentionPart::kToTheEnd;
  const int64_t begin = p.Continues() ? part.first : p.begin / kPageTokens;
  for (int64_t r = 0; r < p.rows; ++r) {
    const int64_t t = p.position + r;
    for (int h = 0; h < p.heads; ++h) {
      const float* q =
          p.q.raw() + r * p.q_stride + int64_t{h} * p.layout.head_dim;
      const int64_t query = r * p.heads + h;
      float* const out = p.out.raw() + query * p.layout.head_dim;
      State all;
      if (p.Continues()) {
        all = {part.max.raw()[query], part.sum.raw()[query],
               std::vector<float>(out, out + p.layout.head_dim)};
      }
      const int64_t end = ends ? t / kPageTokens + 1 : part.end;
      for (int64_t page = begin; page < end; ++page) {
        std::vector<int> cells;
        for (int cell = 0; cell < kPageTokens; ++cell) {
          const int64_t j = page * kPageTokens + cell;
          if (j >= p.begin && j <= t && Sees(p, h / group, t, j)) {
            cells.push_back(cell);
          }
        }
        if (cells.empty()) continue;
        State block =
            OfPage(p, q, h / group, p.pages[page - p.first_page].raw(), cells);
        if (all.out.empty()) {
          all = std::move(block);
        } else {
          Fold(block, all);
        }
      }
      for (size_t d = 0; d < all.out.size(); ++d) {
        out[d] = ends ? all.out[d] / all.sum : all.out[d];
      }
      if (part.is_whole()) continue;
      part.max.raw()[query] = all.max;
      part.sum.raw()[query] = all.sum;
    }
  }
}

}  // namespace tiercel
