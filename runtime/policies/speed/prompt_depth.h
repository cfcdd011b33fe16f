#ifndef TIERCEL_RUNTIME_POLICIES_SPEED_PROMPT_DEPTH_H_
#define TIERCEL_RUNTIME_POLICIES_SPEED_PROMPT_DEPTH_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "models/decoder/config.h"
#include "models/format/checkpoint.h"
#include "offload/kv/kv_extent.h"

namespace tiercel {

// The depth to which the rows of a prompt are computed (SPEED, arXiv
// 2605.06105). All rows go through the layers below the cut, where the whole
// text is visible. Only the anchor, the tail of the prompt and the answer go
// through the layers above it, and only they are visible there.
struct PromptDepth {
  int cut = 0;         // layers that all rows go through; 0: three quarters
  int64_t anchor = 1;  // the first positions of the sequence
  int64_t tail = 0;    // the last rows of a prompt; 0: those that the chat
                       // template ends it with, else the last alone
  bool keeps_past = false;  // earlier answers stay visible above the cut

  // Returns a copy whose cut is set for `config`.
  PromptDepth Of(const ModelConfig& config) const;
  // The extent of the KV of sequences with this depth, which has a cut.
  // `checkpoint` may not be trained for it.
  KvExtent ExtentIn(const Checkpoint& checkpoint) const;
};

// Checks a requested cut. Errors: invalid_argument.
absl::Status CheckCut(const ModelConfig& config, int64_t cut);
// Errors: those of CheckCut, except that a cut of 0 is allowed.
absl::Status CheckPromptDepth(const ModelConfig& config,
                              const PromptDepth& depth);

// Returns a warning that `checkpoint` was not trained for prompts of this
// depth. "" if it declares that it was, by tiercel.speed.cut, .anchor and .past
// in GGUF's metadata or "speed" in config.json.
std::string UntrainedFor(const Checkpoint& checkpoint,
                         const PromptDepth& depth);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_SPEED_PROMPT_DEPTH_H_
