#ifndef TIERCEL_RUNTIME_POLICIES_SFI_SFI_PARAMS_H_
#define TIERCEL_RUNTIME_POLICIES_SFI_SFI_PARAMS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "offload/retrieval/retrieval.h"
#include "runtime/model/model.h"
#include "runtime/plan/prediction.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/sfi/sfi_schedule.h"

namespace tiercel {

// The settings of SFI.
struct SfiParams {
  int64_t budget = 1024;  // positions that a KV head selects, with sinks
  int64_t sink = 4;
  int64_t window = 256;  // newest positions, at least, besides the budget
  // These are as in SfiSchedule::Options.
  SfiTrigger trigger = SfiTrigger::kSentence;
  int64_t interval = 64;
  std::optional<int64_t> gap = {};  // absent: 16, or the interval if less
  bool at_start = false;
  bool half_gap = false;
  // Positions that are selected together: a single one by its key, several by
  // the mean of their keys.
  int chunk = 1;
  Selection choice = {};
  // The given keys that only the plain form heeds, and those that only the
  // verified form heeds.
  std::vector<std::string> plain_keys = {};
  std::vector<std::string> verified_keys = {};

  // The fewest tokens between two slow steps.
  int64_t Gap() const { return gap.value_or(std::min<int64_t>(16, interval)); }

  // Reads `settings`. Errors: invalid_argument.
  absl::Status Set(const std::string& settings);

  // The view of its sessions. In the plain form (`plain`) the rows over the
  // view are kept, so it has the types of the store, and room for the tokens
  // between two selections.
  RetrievalSize View(bool plain) const;

  // The positions that a head selects, in whole chunks.
  int64_t Selected() const { return (budget + chunk - 1) / chunk * chunk; }

  // The plain form's fast steps, if sentences end about halfway between the gap
  // and the interval.
  FastSteps PlannedSteps() const;
};

// Errors: invalid_argument, if the plain form's trigger is the end of a
// sentence and the checkpoint has no tokenizer.
absl::StatusOr<SfiSchedule::Options> SfiOptionsOf(const Model& model,
                                                  const SfiParams& params,
                                                  PolicyForm form);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_SFI_SFI_PARAMS_H_
