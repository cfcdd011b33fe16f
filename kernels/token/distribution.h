#ifndef TIERCEL_KERNELS_TOKEN_DISTRIBUTION_H_
#define TIERCEL_KERNELS_TOKEN_DISTRIBUTION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device/stream.h"
#include "kernels/token/dry.h"
#include "kernels/token/token_mask.h"

namespace tiercel {

// The sampler's parameters: how logits become the distribution from which a
// token is drawn.
struct DistributionParams {
  float temperature = 0.0f;     // 0: the greatest logit, lowest id of equals
  int top_k = 0;                // 0: off
  float top_p = 1.0f;           // 1: off; keeps the token that crosses
  float min_p = 0.0f;           // 0: off; a share of the greatest probability
  float repeat_penalty = 1.0f;  // 1: off
  DryParams dry = {};
  std::shared_ptr<const TokenMask> mask = nullptr;  // null: off
  bool keeps_logits = false;  // a distribution keeps its row's
  // With temperature 0, a distribution says which token came second.
  bool keeps_second = false;
};

// Errors: invalid_sampling naming the field.
absl::Status ValidateDistributionParams(const DistributionParams& params);

inline constexpr int32_t kNoToken = -1;

// A distribution over the tokens that the cuts leave, in no particular order.
// Probabilities sum to 1. If a cut falls between equals, the lower id stays. It
// is empty if the mask leaves no token.
struct Distribution {
  std::vector<int32_t> ids;
  std::vector<float> probabilities;
  // The logits [vocab] as the model made them, if they are kept; else none.
  std::vector<float> logits = {};
  // The token with the next logit below that of the only one, and the
  // probability that temperature 1 would give it beside that one. kNoToken: the
  // only one has no other beside it, or `keeps_second` is off.
  int32_t second = kNoToken;
  float second_share = 0;
};

// Computes the distributions of several rows of logits, each for the token that
// follows those before the row. The steps are, in this order: repeat penalty
// (Keskar et al. 2019: positive logits are divided, others multiplied) for the
// last kRepeatWindow tokens before the row, DRY over the answer's tokens before
// it, the mask, temperature, top-k, top-p (Holtzman et al. 2020), min-p.
// Errors: non_finite if logits hold NaN or infinity; those of the mask.
inline constexpr int64_t kRepeatWindow = 256;  // with 64 paragraphs recurred
struct MakeDistributionsParams {
  const float* logits;  // [rows, vocab]
  int64_t rows;
  int64_t vocab;
  // [before + rows - 1], of which the first before + i are before row i; null:
  // no penalties
  const int32_t* tokens;
  int64_t before;
  DistributionParams distribution;
  int64_t answer_begin = 0;  // index in `tokens`, at most `before`
  // Tokens that have no probability, ids below `vocab` but not all of them;
  // null: none.
  const std::vector<int32_t>* never = nullptr;
  // The whole text, for the mask, of which `tokens` may lack a part:
  // [text_before
  // + rows - 1], of which the first text_before + i are before row i.
  const int32_t* text = nullptr;
  int64_t text_before = 0;
};
absl::StatusOr<std::vector<Distribution>> MakeDistributions(
    Stream& stream, const MakeDistributionsParams& p);

// Draws a token by the Gumbel-max trick: argmax of log p + g, where g, the
// noise of (seed, position, id), does not depend on the distribution. So two
// distributions that nearly agree nearly always draw the same token. Returns
// kNoToken if the distribution is empty.
int32_t Draw(const Distribution& distribution, uint64_t seed, int64_t position);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_DISTRIBUTION_H_
