#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/number/reference_math.h"
#include "kernels/select/importance.h"

namespace tiercel {
namespace {

float RootWeight(float score, float max) {
  return ExpLane((score - max) * 0.5f) - ExpLane(-87.0f);
}

void AddRow(std::span<const float> scores, float* importance) {
  float max = std::numeric_limits<float>::lowest();
  for (const float x : scores) {
    if (std::isnan(x) || x == std::numeric_limits<float>::infinity()) return;
    max = std::max(max, x);
  }
  float lane[16] = {};
  for (size_t j = 0; j < scores.size(); ++j) {
    const float weight = RootWeight(scores[j], max);
    lane[j % 16] = std::fma(weight, weight, lane[j % 16]);
  }
  const float length = std::sqrt(SumLanes(lane));
  if (length == 0.0f) return;  // it sees none
  for (size_t j = 0; j < scores.size(); ++j) {
    importance[j] += RootWeight(scores[j], max) / length;
  }
}

}  // namespace

void AddImportanceReference(const ImportanceParams& p) {
  for (int64_t i = 0; i < p.kv_heads * p.candidates; ++i) {
    const int64_t at =
        i / p.candidates * p.importance_stride + i % p.candidates;
    p.importance.raw()[at] = p.before.raw()[at] * p.decay;
  }
  const int group = p.heads / p.kv_heads;
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int h = 0; h < p.heads; ++h) {
      AddRow({p.scores.raw() + (r * p.heads + h) * p.scores_stride,
              static_cast<size_t>(p.candidates)},
             p.importance.raw() + h / group * p.importance_stride);
    }
  }
}

}  // namespace tiercel
