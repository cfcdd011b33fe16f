#ifndef TIERCEL_RUNTIME_POLICIES_SPEED_SPEED_PARAMS_H_
#define TIERCEL_RUNTIME_POLICIES_SPEED_SPEED_PARAMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/policies/speed/prompt_depth.h"

namespace tiercel {

// The settings of SPEED.
struct SpeedParams {
  PromptDepth depth = {};
  // The cut as it was given, for CheckCut: only a model knows its number of
  // layers. `depth` has it if any model can have so many.
  std::optional<int64_t> cut = {};
  // The given keys that only the plain form heeds.
  std::vector<std::string> plain_keys = {};

  // Reads `settings`. Errors: invalid_argument.
  absl::Status Set(const std::string& settings);
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_SPEED_SPEED_PARAMS_H_
