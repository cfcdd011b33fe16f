#ifndef TIERCEL_KERNELS_TOKEN_LOG_PROBS_H_
#define TIERCEL_KERNELS_TOKEN_LOG_PROBS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace tiercel {

// The log-probabilities of a token and of the most likely ones, by the model
// alone: the logarithm of the softmax of its logits, before anything that a
// sampler does to them.
struct TokenLogProbs {
  float log_prob = 0;                 // the token's
  std::vector<int32_t> top_ids = {};  // the most likely first, then the lowest
  std::vector<float> top_log_probs = {};  // [top_ids]
};

// Returns those of `id` and of the `most` most likely tokens, or of all if
// there are fewer. The logits, [vocab], are finite, and `id` is below vocab.
TokenLogProbs LogProbsOf(std::span<const float> logits, int32_t id,
                         int64_t most);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_LOG_PROBS_H_
