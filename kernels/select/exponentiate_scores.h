#ifndef TIERCEL_KERNELS_SELECT_EXPONENTIATE_SCORES_H_
#define TIERCEL_KERNELS_SELECT_EXPONENTIATE_SCORES_H_

#include <cmath>
#include <limits>

#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/number/reference_math.h"

namespace tiercel {

// A block turns n scores into weights e^(score - max), and every thread gets
// their sum. If a score is not finite, the sum is NaN and the scores stay.
TIERCEL_DEVICE float ExponentiateScores(const Thread& t, float* scores,
                                        int64_t n, BlockSums& sums) {
  float max = -std::numeric_limits<float>::infinity();
  for (int64_t i = t.index; i < n; i += t.count) {
    max = MaxOrNan(max, std::isfinite(scores[i])
                            ? scores[i]
                            : std::numeric_limits<float>::quiet_NaN());
  }
  max = MaxOfBlock(t, max, sums.of_warps);
  if (std::isnan(max)) return max;  // all threads know
  return SumInChains(
      t, n, sums,
      [&](int64_t i) { return scores[i] = ExpLane(scores[i] - max); },
      [](float sum, float weight) { return sum + weight; });
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SELECT_EXPONENTIATE_SCORES_H_
