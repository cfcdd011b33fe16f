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

// The noise of kNoiseIds tokens, from the first of a block of as many on:
// Philox's words for a draw at `position`, one for each token.
inline constexpr int kNoiseIds = 64;
using NoiseWordsFn = void(uint64_t seed, uint64_t position, uint32_t first_id,
                          uint32_t* words);
// Returns true if one of kNoiseIds tokens with these words has
// least * p > 1 - u (Draw).
using SomeMayWinFn = bool(const float* probabilities, const uint32_t* words,
                          double least);

GreatestLogitFn GreatestLogitReference;
ExponentiateLogitsFn ExponentiateLogitsReference;
namespace portable {
GreatestLogitFn GreatestLogit;
ExponentiateLogitsFn ExponentiateLogits;
NoiseWordsFn NoiseWords;
SomeMayWinFn SomeMayWin;
}  // namespace portable
namespace avx2 {
GreatestLogitFn GreatestLogit;
ExponentiateLogitsFn ExponentiateLogits;
NoiseWordsFn NoiseWords;
SomeMayWinFn SomeMayWin;
}  // namespace avx2
namespace avx512 {
GreatestLogitFn GreatestLogit;
ExponentiateLogitsFn ExponentiateLogits;
NoiseWordsFn NoiseWords;
SomeMayWinFn SomeMayWin;
}  // namespace avx512

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_DISTRIBUTION_BODY_H_
