#ifndef TIERCEL_KERNELS_LAYER_PROLOGUE_DEVICE_H_
#define TIERCEL_KERNELS_LAYER_PROLOGUE_DEVICE_H_

// The arithmetic of norms and gates, which kernels do alone or before they
// quantise a row.

#include <cmath>

#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/number/reference_math.h"

namespace tiercel {

// Returns the factor of a norm (rms_norm.h): one over the root of the mean
// square of x. Every thread of the block gets it.
//
// The chains of squares are sequential: 4,096 elements take 256 dependent
// multiply-adds. With more rows, blocks hide each other's latency.
TIERCEL_DEVICE float NormFactor(const Thread& t, const float* x, int dim,
                                float eps, BlockSums& sums) {
  const float squares = SumInChains(
      t, dim, sums, [&](int64_t i) { return x[i]; },
      [](float sum, float value) { return std::fma(value, value, sum); });
  return 1.0f / std::sqrt(squares / static_cast<float>(dim) + eps);
}

// An element of Swiglu.
TIERCEL_DEVICE float SwigluOf(float gate, float up) {
  const float x = -gate > 88.0f ? 88.0f : -gate;
  return gate / (1.0f + ExpLane(x)) * up;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_PROLOGUE_DEVICE_H_
