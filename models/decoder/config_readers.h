#ifndef TIERCEL_MODELS_DECODER_CONFIG_READERS_H_
#define TIERCEL_MODELS_DECODER_CONFIG_READERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/decoder/config.h"

namespace tiercel {

// The two readers behind ReadModelConfig. They check each integer against
// ConfigLimits; relations between numbers are checked afterwards, for both
// alike.
absl::StatusOr<ModelConfig> ReadGgufConfig(const Checkpoint& checkpoint);
absl::StatusOr<ModelConfig> ReadHfConfig(const Checkpoint& checkpoint);

// Returns ModelConfig::rotated where every `unrotated_interval`th layer has no
// RoPE; 0: all have it.
std::vector<bool> RotatedLayers(int layers, int64_t unrotated_interval);

// Returns the magnitude of YaRN's attention, from which its factor is made.
double YarnMagnitude(double factor, double multiplier);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_CONFIG_READERS_H_
