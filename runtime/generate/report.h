#ifndef TIERCEL_RUNTIME_GENERATE_REPORT_H_
#define TIERCEL_RUNTIME_GENERATE_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "offload/plan/tier_plan.h"
#include "offload/tier/ledger.h"
#include "runtime/drafting/rounds.h"
#include "runtime/predict/prediction.h"
#include "runtime/sequence/session.h"
#include "runtime/sequence/time_spent.h"

namespace tiercel {

// What a prefill did.
struct PrefillReport {
  int64_t prompt_tokens = 0;  // that the session held after it
  int64_t cached_tokens = 0;  // of those, whose KV was there before
  int resumed_layers = 0;     // Session's
  TimeSpent spent = {};
  Traffic traffic = {};

  int64_t computed_tokens() const { return prompt_tokens - cached_tokens; }
};

// What a generation did, and the prefill before it.
struct Report {
  // Why it ended early; what there is then is in the rest.
  absl::Status status;
  PrefillReport prefill;

  std::string text;
  std::vector<int32_t> tokens;
  std::string finish_reason;  // stop, length, cancelled; empty: failed
  // Seconds of each of these tokens since the one before it was there (the
  // first: since the generation began). Those of one sweep come at once, and
  // share its time.
  std::vector<double> token_seconds;
  int64_t sweeps = 0;  // passes of the target but the first token's alone
  RoundsReport rounds;
  Traffic traffic;  // without the prefill's
  TierPlan plan;
  // Absent: rates are not known. Its time between tokens is that of sweeps:
  // what drafts will hold nobody knows, nor what a schedule makes of a text.
  std::optional<Prediction> predicted;
  MemoryUse memory;
  // What each rank takes of its device, and the KV of its heads.
  struct RankUse {
    int64_t device_bytes = 0;
    TierPlan plan;
  };
  std::vector<RankUse> ranks;  // [rank]
  int64_t kv_entries = 0;      // pairs of a layer and a position that have KV
  int64_t kv_bytes = 0;        // of all of these
  bool simulated = false;
  std::vector<std::string> warnings;  // Session::warnings

  void NoteKv(const Session& session);      // as it is now
  void NoteMemory(const Session& session);  // likewise
  nlohmann::json ToJson() const;
};

// The report of a generation in `session` that has yet to begin; `prefill` is
// the session's last.
Report NewReport(const Session& session, const PrefillReport& prefill);

// Adds what `rates` had said of a generation in `session`, now that it is known
// how long it became.
void AddPrediction(const Session& session, const Rates& rates, Report* report);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_GENERATE_REPORT_H_
