#ifndef TIERCEL_RUNTIME_POLICY_SPEED_PARAMS_H_
#define TIERCEL_RUNTIME_POLICY_SPEED_PARAMS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/decoder/prompt_depth.h"

namespace tiercel {

// What SPEED was asked for.
struct SpeedParams {
  PromptDepth depth = {};
  // As it was given, for CheckCut: only a model knows how many layers there
  // are. `depth` has it where some model has so many.
  std::optional<int64_t> cut = {};
  // Keys that were given and that the plain form alone heeds.
  std::vector<std::string> plain_keys = {};

  // Reads `settings`. Errors: invalid_argument.
  absl::Status Set(const std::string& settings);
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_SPEED_PARAMS_H_
