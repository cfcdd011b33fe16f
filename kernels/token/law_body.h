#ifndef TIERCEL_KERNELS_TOKEN_LAW_BODY_H_
#define TIERCEL_KERNELS_TOKEN_LAW_BODY_H_

#include <cstdint>

namespace tiercel {

// The greatest of n logits; not finite where one of them is not.
using GreatestLogitFn = float(const float* logits, int64_t n);

// weights[i] = e^((logits[i] - greatest) / temperature), less e^-87, so that
// what is further below weighs nothing. Returns their sum: of every
// kWeightsTogether in floats, element i to lane i % 16 and the lanes as
// ReduceAdd folds them, and these sums in double, in order.
inline constexpr int64_t kWeightsTogether = 256;
using WeighLogitsFn = double(const float* logits, int64_t n, float greatest,
                             float temperature, float* weights);

GreatestLogitFn GreatestLogitReference;
WeighLogitsFn WeighLogitsReference;
namespace portable {
GreatestLogitFn GreatestLogit;
WeighLogitsFn WeighLogits;
}  // namespace portable
namespace avx2 {
GreatestLogitFn GreatestLogit;
WeighLogitsFn WeighLogits;
}  // namespace avx2
namespace avx512 {
GreatestLogitFn GreatestLogit;
WeighLogitsFn WeighLogits;
}  // namespace avx512

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_LAW_BODY_H_
