#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/number/reference_math.h"
#include "kernels/select/coverage.h"

namespace tiercel {
namespace {

float SumOf(std::span<const float> x) {
  float lane[16] = {};
  for (size_t i = 0; i < x.size(); ++i) lane[i % 16] += x[i];
  return SumLanes(lane);
}

HeadSums Exponentiate(std::span<float> scores, size_t newest) {
  for (const float x : scores) {
    if (!std::isfinite(x)) return {NAN, NAN};
  }
  const float max = *std::max_element(scores.begin(), scores.end());
  for (float& x : scores) x = ExpLane(x - max);
  return {SumOf(scores), SumOf(scores.subspan(newest))};
}

}  // namespace

void CoverageReference(const CoverageParams& p) {
  for (int h = 0; h < p.heads; ++h) {
    float* const scores = p.scores.raw() + h * p.scores_stride;
    p.out.raw()[h] =
        CoverageOf(Exponentiate({scores, static_cast<size_t>(p.positions)},
                                static_cast<size_t>(p.newest)),
                   scores, p.kept[h / (p.heads / p.kv_heads)], p.num_kept);
  }
}

}  // namespace tiercel
