#ifndef TIERCEL_RUNTIME_POLICY_SPEED_PARAMS_H_
#define TIERCEL_RUNTIME_POLICY_SPEED_PARAMS_H_

#include <string>

#include "absl/status/status.h"
#include "models/decoder/prompt_depth.h"

namespace tiercel {

// What SPEED was asked for.
struct SpeedParams {
  PromptDepth depth = {};

  // Reads `settings`. Errors: invalid_argument.
  absl::Status Set(const std::string& settings);
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_SPEED_PARAMS_H_
