#ifndef TIERCEL_APPS_COMMANDS_TOTAL_COST_H_
#define TIERCEL_APPS_COMMANDS_TOTAL_COST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/terminal/output.h"

namespace tiercel::cli {

// The joint cost of several generations of one session, from their reports.
class TotalCost {
 public:
  // Adds the session's report of one prompt and its answer. `token_seconds` has
  // the seconds of each token of the answer since the one before.
  void Add(const Json& report, const std::vector<double>& token_seconds);
  // Adds what other generations took, after these.
  void Add(const TotalCost& other);
  // Says in how many seconds any of the answers was generated, if several were
  // at once.
  void DecodedIn(double seconds) { decode_s_ = seconds; }

  int64_t prompt_tokens() const { return prompt_tokens_; }
  int64_t cached_tokens() const { return cached_tokens_; }
  int64_t output_tokens() const { return output_tokens_; }

  // The fields of a generation's document, for all generations together:
  // counts, bytes and seconds are summed (`ttft_s` over all prompts), `tbt_ms`
  // has the gaps within all answers, rates are tokens over seconds, and
  // `memory` is the most of any. Fields that cannot be joined are null; before
  // the first Add all are, except the counts, which are 0.
  Json ToJson() const;
  // host_bytes and device_bytes of "predicted", the most of any; empty if there
  // was no prediction.
  const Json& predicted_memory() const { return predicted_memory_; }

 private:
  double DecodeSeconds() const;

  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;
  int64_t output_tokens_ = 0;
  double prefill_s_ = 0;
  double ttft_s_ = 0;
  std::vector<double> gap_ms_;      // between tokens of one answer
  std::optional<double> decode_s_;  // absent: answers came one by one
  Json sums_;  // sums of "speculation" and "ledger"; null before the first Add
  Json memory_;
  Json predicted_memory_ = Json::object();
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_TOTAL_COST_H_
