#ifndef TIERCEL_APPS_COMMANDS_SPENT_H_
#define TIERCEL_APPS_COMMANDS_SPENT_H_

#include <cstdint>
#include <vector>

#include "apps/terminal/output.h"

namespace tiercel::cli {

// What several generations of one session took together, from their reports.
class Spent {
 public:
  // `report` is the session's, of one prompt and its answer, `token_seconds`
  // the answer's: of each token the seconds since the one before.
  void Add(const Json& report, const std::vector<double>& token_seconds);

  int64_t prompt_tokens() const { return prompt_tokens_; }
  int64_t cached_tokens() const { return cached_tokens_; }
  int64_t output_tokens() const { return output_tokens_; }

  // The fields of a generation's document that can be said of all together:
  // counts, bytes and seconds are summed (of `ttft_s` those of each prompt on
  // to its first token), `tbt_ms` has the gaps within all answers, rates are
  // tokens over seconds, and `memory` is the most of any. What cannot is null;
  // before anything was added all are but the counts, which are 0.
  Json ToJson() const;
  // host_bytes and device_bytes of "predicted", the most of any; empty where
  // nothing was predicted.
  const Json& predicted_memory() const { return predicted_memory_; }

 private:
  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;
  int64_t output_tokens_ = 0;
  double prefill_s_ = 0;
  double ttft_s_ = 0;
  std::vector<double> gap_ms_;  // between tokens of one answer
  Json sums_;  // of "speculation" and "ledger"; null: of nothing
  Json memory_;
  Json predicted_memory_ = Json::object();
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_SPENT_H_
