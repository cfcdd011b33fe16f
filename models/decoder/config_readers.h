#ifndef TIERCEL_MODELS_DECODER_CONFIG_READERS_H_
#define TIERCEL_MODELS_DECODER_CONFIG_READERS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/decoder/config.h"

namespace tiercel {

// The two halves of ReadModelConfig. Each integer is in ConfigLimits; what one
// number must be to another is checked afterwards, for both alike.
absl::StatusOr<ModelConfig> ReadGgufConfig(const Checkpoint& checkpoint);
absl::StatusOr<ModelConfig> ReadHfConfig(const Checkpoint& checkpoint);

// Far above every known model, and low enough that no product of a few of them
// leaves 64 bits.
struct ConfigLimits {
  static constexpr int64_t kVocab = int64_t{1} << 22;
  static constexpr int64_t kHidden = int64_t{1} << 17;
  static constexpr int64_t kLayers = 512;
  static constexpr int64_t kHeads = 1024;
  static constexpr int64_t kHeadDim = 1024;
  static constexpr int64_t kFfn = int64_t{1} << 20;
  static constexpr int64_t kContext = int64_t{1} << 30;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_CONFIG_READERS_H_
