#ifndef TIERCEL_KERNELS_TOKEN_DISTRIBUTION_CUT_H_
#define TIERCEL_KERNELS_TOKEN_DISTRIBUTION_CUT_H_

#include <vector>

#include "kernels/token/distribution.h"

namespace tiercel {

// The distribution over the tokens that top-k, top-p and min-p leave. `weights`
// are probabilities scaled such that the greatest is 1, and `total` is their
// sum; `logits` are in the same order.
Distribution CutDistribution(const DistributionParams& params,
                             const float* logits,
                             const std::vector<float>& weights, double total);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_DISTRIBUTION_CUT_H_
