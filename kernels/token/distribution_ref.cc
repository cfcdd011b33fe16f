#include <algorithm>
#include <cmath>

#include "kernels/number/reference_math.h"
#include "kernels/token/distribution_body.h"

namespace tiercel {

float GreatestLogitReference(const float* logits, int64_t n) {
  const float* const bad = std::find_if(
      logits, logits + n, [](float logit) { return !std::isfinite(logit); });
  return bad != logits + n ? *bad : *std::max_element(logits, logits + n);
}

double ExponentiateLogitsReference(const float* logits, int64_t n,
                                   float greatest, float temperature,
                                   float* weights) {
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kWeightsTogether) {
    float lanes[16] = {};
    for (int64_t i = begin; i < std::min(n, begin + kWeightsTogether); ++i) {
      const float x = (logits[i] - greatest) / temperature;
      weights[i] = std::max(0.0f, ExpLane(x) - ExpLane(-87.0f));
      lanes[i % 16] += weights[i];
    }
    sum += static_cast<double>(SumLanes(lanes));
  }
  return sum;
}

}  // namespace tiercel
