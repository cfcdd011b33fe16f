#ifndef TIERCEL_KERNELS_TOKEN_LAW_H_
#define TIERCEL_KERNELS_TOKEN_LAW_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/machine/stream.h"
#include "kernels/token/dry.h"

namespace tiercel {

// How logits become the law a token is drawn from.
struct LawParams {
  float temperature = 0.0f;     // 0: the greatest logit, lowest id of equals
  int top_k = 0;                // 0: off
  float top_p = 1.0f;           // 1: off; keeps the token that crosses
  float min_p = 0.0f;           // 0: off; of the greatest probability
  float repeat_penalty = 1.0f;  // 1: off
  DryParams dry = {};
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

// The laws of several rows of logits, each the law of the token that follows
// what is before it. In this order: repeat penalty (Keskar et al. 2019:
// positive logits divided, others multiplied) of the last kRepeatWindow tokens
// before the row, DRY over those of the answer before it, temperature, top-k,
// top-p (Holtzman et al. 2020), min-p.
// Errors: non_finite where logits hold NaN or infinity.
inline constexpr int64_t kRepeatWindow = 256;  // 64 let paragraphs come again
struct MakeLawsParams {
  const float* logits;  // [rows, vocab]
  int64_t rows;
  int64_t vocab;
  // [before + rows - 1], those of row i before + i; null: no penalties
  const int32_t* tokens;
  int64_t before;
  LawParams law;
  int64_t answer_begin = 0;  // of `tokens`, at most `before`
};
absl::StatusOr<std::vector<Law>> MakeLaws(Stream& stream,
                                          const MakeLawsParams& p);

// The Gumbel-max draw: argmax over the law of log p + g, where g, the noise of
// (seed, position, id), is the same whatever the law. Two laws that nearly
// agree thus nearly always draw the same token.
int32_t Draw(const Law& law, uint64_t seed, int64_t position);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_LAW_H_
