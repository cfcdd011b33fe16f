#ifndef TIERCEL_RUNTIME_GENERATE_REPORT_H_
#define TIERCEL_RUNTIME_GENERATE_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "offload/tier/ledger.h"
#include "runtime/drafting/rounds.h"
#include "runtime/plan/prediction.h"
#include "runtime/plan/tier_plan.h"
#include "runtime/session/session.h"
#include "runtime/session/time_spent.h"

namespace tiercel {

// The work of one prefill.
struct PrefillReport {
  int64_t prompt_tokens = 0;  // tokens of the session after it
  int64_t cached_tokens = 0;  // tokens whose KV was there before
  int resumed_layers = 0;     // Session::resumed_layers
  TimeSpent spent = {};
  Traffic traffic = {};

  int64_t computed_tokens() const { return prompt_tokens - cached_tokens; }
};

// The work of one generation, and of the prefill before it.
struct Report {
  // The reason why it ended early; the other members hold what there is then.
  absl::Status status;
  PrefillReport prefill;

  std::string text;
  std::optional<std::string>
      thought;  // before the text; absent: none was split
  std::vector<int32_t> tokens;
  std::string finish_reason;  // stop, length, cancelled; empty: failed
  // The seconds from the token before to each token (for the first: from the
  // beginning of the generation). Tokens of one sweep come at once, and share
  // its time.
  std::vector<double> token_seconds;
  int64_t sweeps = 0;  // passes of the target, without the first token's
  RoundsReport rounds;
  Traffic traffic;  // without the prefill's
  TierPlan plan;
  // Absent if rates are not known. Its time between tokens is that of sweeps:
  // the share of drafts that will hold is not known, nor the effect of a
  // schedule.
  std::optional<Prediction> predicted;
  MemoryUse memory;
  // The memory that each rank takes of its device, and the plan of its KV.
  struct RankUse {
    int64_t device_bytes = 0;
    TierPlan plan;
  };
  std::vector<RankUse> ranks;  // [rank]
  int64_t kv_entries = 0;      // pairs of a layer and a position that have KV
  int64_t kv_bytes = 0;        // bytes of these entries
  bool simulated = false;
  std::vector<std::string> warnings;  // Session::warnings

  void NoteKv(const Session& session);      // now
  void NoteMemory(const Session& session);  // now
  nlohmann::json ToJson() const;
};

// The report of a generation in `session` that has yet to begin; `prefill` is
// the session's last.
Report NewReport(const Session& session, const PrefillReport& prefill);

// Adds the prediction that `rates` give for a generation in `session`, whose
// length is now known.
void AddPrediction(const Session& session, const Rates& rates, Report* report);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_REPORT_H_
