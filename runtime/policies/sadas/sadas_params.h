#ifndef TIERCEL_RUNTIME_POLICIES_SADAS_SADAS_PARAMS_H_
#define TIERCEL_RUNTIME_POLICIES_SADAS_SADAS_PARAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/chat/thought_tags.h"
#include "offload/kv/view.h"
#include "runtime/model/model.h"
#include "runtime/plan/prediction.h"
#include "runtime/policies/sadas/think_schedule.h"

namespace tiercel {

// The settings of SADAS.
struct SadasParams {
  int64_t window = 4096;  // newest positions, the row's own included
  int64_t sink = 0;       // first positions of the text, beside the window
  // These are as in ThinkSchedule::Options, except that tags are texts.
  ThinkGate gate = ThinkGate::kState;
  std::string open = "<think>";
  std::string close = "</think>";
  bool begins_open = false;
  int64_t most = 0;
  bool latch = true;
  bool pins_prompt = false;  // the prompt stays in view
  // If set, the answer reads only the positions that a cache of the window
  // would have kept (the paper's truncated and hybrid caches).
  bool keeps_window = false;
  // The given keys that only the plain form heeds.
  std::vector<std::string> plain_keys = {};

  // Reads `settings`. Errors: invalid_argument.
  absl::Status Set(const std::string& settings);

  // The plain form's fast steps: all steps if the text is sure to think, else
  // none.
  FastSteps PlannedSteps() const {
    const bool thinks = gate == ThinkGate::kAlways || begins_open;
    return {window + sink, thinks ? 1.0 : 0.0};
  }
};

// The tags: the model's own (ThoughtTagsOf), unless others are set.
ThoughtTags TagsOf(const Model& model, const SadasParams& params);
// Errors: invalid_argument, if the model has no tokenizer and a tag must be
// found, or if it cannot encode a tag.
absl::StatusOr<ThinkSchedule::Options> ThinkOptionsOf(
    const Model& model, const SadasParams& params);

// The window of a sequence that begins at position `begin` and whose prompt has
// `prompt` tokens.
View WindowOf(const SadasParams& params, int64_t begin, int64_t prompt);
// The view of the row of the schedule's last token, where there are at most
// `context` positions.
View ViewOf(const SadasParams& params, const ThinkSchedule& schedule,
            int64_t begin, int64_t prompt, int64_t context);
// The view of the plain form's prompt rows.
View PromptViewOf(const SadasParams& params);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_SADAS_SADAS_PARAMS_H_
