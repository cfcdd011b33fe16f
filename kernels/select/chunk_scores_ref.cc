#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/number/reference_math.h"
#include "kernels/select/chunk_scores.h"
#include "kernels/select/mean_scores.h"

namespace tiercel {
namespace {

// Adds the softmax of one head's scores to `out`.
void AddSoftmax(std::span<float> score, float* out) {
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
  MeanScoresParams scoring = ScoresOf(p);
  const int64_t stride = scoring.out_stride;
  std::vector<float> scores(static_cast<size_t>(p.heads * stride));
  scoring.out = InPlace(scores.data());
  MeanScoresReference(scoring);
  std::fill_n(p.out.raw(), p.kv_heads * p.num_chunks, 0.0f);
  for (int h = 0; h < p.heads; ++h) {
    AddSoftmax({scores.data() + h * stride, static_cast<size_t>(p.num_chunks)},
               p.out.raw() + h / group * p.num_chunks);
  }
}

}  // namespace tiercel
