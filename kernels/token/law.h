#ifndef TIERCEL_KERNELS_TOKEN_LAW_H_
#define TIERCEL_KERNELS_TOKEN_LAW_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/base/stream.h"

namespace tiercel {

// How logits become the law a token is drawn from.
struct LawParams {
  float temperature = 0.0f;     // 0: the greatest logit, lowest id of equals
  int top_k = 0;                // 0: off
  float top_p = 1.0f;           // 1: off; keeps the token that crosses
  float min_p = 0.0f;           // 0: off; of the greatest probability
  float repeat_penalty = 1.0f;  // 1: off; of the ids in `recent`
};

// Errors: invalid_sampling naming the field.
absl::Status ValidateLawParams(const LawParams& params);

// A distribution over tokens: those that survived the cuts, in no particular
// order, with probabilities that sum to 1. Where equals meet a cut the lower id
// survives.
struct Law {
  std::vector<int32_t> ids;
  std::vector<float> probabilities;
};

// In this order: repeat penalty (Keskar et al. 2019: positive logits divided,
// others multiplied), temperature, top-k, top-p (Holtzman et al. 2020), min-p.
// Errors: non_finite where logits hold NaN or infinity.
struct MakeLawParams {
  const float* logits;  // [vocab]
  int64_t vocab;
  const int32_t* recent;  // [num_recent] ids under the repeat penalty
  int64_t num_recent;
  LawParams law;
};
absl::StatusOr<Law> MakeLaw(Stream& stream, const MakeLawParams& p);

// The Gumbel-max draw: argmax over the law of log p + g, where g, the noise of
// (seed, position, id), is the same whatever the law. Two laws that nearly
// agree thus nearly always draw the same token.
int32_t Draw(const Law& law, uint64_t seed, int64_t position);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_LAW_H_
