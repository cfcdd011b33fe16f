#ifndef TIERCEL_KERNELS_TOKEN_DISTRIBUTION_BODY_H_
#define TIERCEL_KERNELS_TOKEN_DISTRIBUTION_BODY_H_

#include <cstdint>

namespace tiercel {

// The greatest of n logits. It is not finite if one of them is not.
using GreatestLogitFn = float(const float* logits, int64_t n);

// Computes weights[i] = e^((logits[i] - greatest) / temperature), less e^-87,
// so that logits further below have the weight 0. Returns their sum: every
// kWeightsTogether are summed in floats, element i in lane i % 16 and then the
// lanes as in ReduceAdd, and these sums are added in double, in order.
inline constexpr int64_t kWeightsTogether = 256;
using ExponentiateLogitsFn = double(const float* logits, int64_t n,
                                    float greatest, float temperature,
                                    float* weights);

GreatestLogitFn GreatestLogitReference;
ExponentiateLogitsFn ExponentiateLogitsReference;
namespace portable {
GreatestLogitFn GreatestLogit;
ExponentiateLogitsFn ExponentiateLogits;
}  // namespace portable
namespace avx2 {
GreatestLogitFn GreatestLogit;
ExponentiateLogitsFn ExponentiateLogits;
}  // namespace avx2
namespace avx512 {
GreatestLogitFn GreatestLogit;
ExponentiateLogitsFn ExponentiateLogits;
}  // namespace avx512

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_DISTRIBUTION_BODY_H_
