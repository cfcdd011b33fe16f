#ifndef TIERCEL_RUNTIME_POLICY_SFI_PARAMS_H_
#define TIERCEL_RUNTIME_POLICY_SFI_PARAMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "offload/view/retrieval.h"
#include "runtime/model/model.h"
#include "runtime/policy/sfi_schedule.h"
#include "runtime/predict/prediction.h"

namespace tiercel {

// What SFI was asked for.
struct SfiParams {
  int64_t budget = 1024;  // positions of a KV head that are chosen, with sinks
  int64_t sink = 4;
  int64_t window = 256;  // newest positions, at least, beside the budget
  // These are as SfiSchedule::Options has them.
  SfiTrigger trigger = SfiTrigger::kSentence;
  int64_t interval = 64;
  std::optional<int64_t> gap = {};  // absent: 16, or the interval if less
  bool at_start = false;
  bool half_gap = false;
  // Positions that are chosen together: one by its key, more by the mean of
  // their keys.
  int chunk = 1;
  Selection choice = {};
  // Keys that were given and that the plain form alone heeds, or the verified.
  std::vector<std::string> plain_keys = {};
  std::vector<std::string> verified_keys = {};

  // Reads `settings`. Errors: invalid_argument.
  absl::Status Set(const std::string& settings);

  // The view of its sessions. `plain`: its steps are kept, so it has the types
  // of the store, and room for the tokens between two choices.
  RetrievalSize View(bool plain) const;

  // Positions of a head that are chosen, in whole chunks.
  int64_t Selected() const { return (budget + chunk - 1) / chunk * chunk; }

  // The plain form's fast steps, where the end of a sentence comes half way
  // between the least and the most that it may take, about.
  FastSteps PlannedSteps() const;
};

// Errors: invalid_argument, where sentences are to end and the checkpoint has
// no tokenizer.
absl::StatusOr<SfiSchedule::Options> SfiOptionsOf(const Model& model,
                                                  const SfiParams& params);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_SFI_PARAMS_H_
