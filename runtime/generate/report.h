#ifndef TIERCEL_RUNTIME_GENERATE_REPORT_H_
#define TIERCEL_RUNTIME_GENERATE_REPORT_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "drafts/drafter.h"
#include "nlohmann/json.hpp"
#include "offload/move/ledger.h"
#include "offload/plan/tier_plan.h"
#include "runtime/predict/prediction.h"

namespace tiercel {

// Time, and how much of it the link was occupied, by whatever was on it. A copy
// counts when it ends.
struct TimeSpent {
  double seconds = 0;
  double link_seconds = 0;

  TimeSpent& operator+=(const TimeSpent& other) {
    seconds += other.seconds;
    link_seconds += other.link_seconds;
    return *this;
  }
  // The rest: where rounding would leave less than nothing, nothing.
  TimeSpent operator-(const TimeSpent& other) const {
    return {std::max(0.0, seconds - other.seconds),
            std::max(0.0, link_seconds - other.link_seconds)};
  }
};

// What the last prefill and generation of a session did.
struct Report {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, whose KV was there before
  int64_t prefilled_tokens = 0;
  TimeSpent prefill;

  std::string text;
  std::vector<int32_t> tokens;
  std::string finish_reason;  // stop, length; empty: cancelled or failed
  // Seconds of each of these tokens since the one before it was there (the
  // first: since the generation began). Those of one sweep come at once, and
  // share its time.
  std::vector<double> token_seconds;
  int64_t sweeps = 0;  // passes of the target but the first token's alone
  std::vector<DraftLevel> levels;  // the innermost first
  TimeSpent verify;                // sweeps
  TimeSpent draft;
  TimeSpent refresh;

  Traffic prefill_traffic;
  Traffic decode_traffic;
  TierPlan plan;
  // Absent: rates are not known. Its time between tokens is that of sweeps:
  // what drafts will hold nobody knows.
  std::optional<Prediction> predicted;
  MemoryUse memory;
  bool simulated = false;
  std::vector<std::string> warnings;  // Session::warnings

  nlohmann::json ToJson() const;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_REPORT_H_
