#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/chunk_scores.h"
#include "kernels/attention/chunk_scores_body.h"
#include "kernels/number/half.h"
#include "kernels/number/reference_math.h"

namespace tiercel {
namespace {

// Adds the softmax of one head's scores to `out`.
void AddSoftmax(std::vector<float>& score, float* out) {
  float max = -std::numeric_limits<float>::infinity();
  for (float x : score) {
    if (!std::isfinite(x)) return;
    max = std::fmax(max, x);
  }
  float lane[16] = {};
  for (size_t c = 0; c < score.size(); ++c) {
    score[c] = ExpLane(score[c] - max);
    lane[c % 16] += score[c];
  }
  const float sum = SumLanes(lane);
  for (size_t c = 0; c < score.size(); ++c) out[c] += score[c] / sum;
}

}  // namespace

void ChunkScoresReference(const ChunkScoresParams& p) {
  const int group = p.heads / p.kv_heads;
  std::fill_n(p.out, p.kv_heads * p.num_chunks, 0.0f);
  std::vector<float> score(static_cast<size_t>(p.num_chunks));
  for (int h = 0; h < p.heads; ++h) {
    const int kv_head = h / group;
    const float* q = p.q + int64_t{h} * p.head_dim;
    for (int64_t c = 0; c < p.num_chunks; ++c) {
      const uint16_t* mean =
          p.means + kv_head * p.means_stride + c * p.head_dim;
      float dot = 0.0f;
      for (int d = 0; d < p.head_dim; ++d) {
        dot = std::fma(q[d], F32FromF16(mean[d]), dot);
      }
      score[static_cast<size_t>(c)] = dot * p.scale;
    }
    AddSoftmax(score, p.out + kv_head * p.num_chunks);
  }
}

}  // namespace tiercel
