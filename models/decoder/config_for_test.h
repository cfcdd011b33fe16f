#ifndef TIERCEL_MODELS_DECODER_CONFIG_FOR_TEST_H_
#define TIERCEL_MODELS_DECODER_CONFIG_FOR_TEST_H_

// Reads descriptions of models from checkpoints in memory.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "models/decoder/config.h"
#include "models/format/files_for_test.h"
#include "models/format/json.h"
#include "models/format/safetensors.h"

namespace tiercel {

inline absl::StatusOr<ModelConfig> ReadConfigOf(
    const absl::StatusOr<std::unique_ptr<Checkpoint>>& checkpoint) {
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return checkpoint.status();
  return ReadModelConfig(**checkpoint);
}

// Reads a folder of safetensors with this config.json and, unless it is null,
// this generation_config.json.
inline absl::StatusOr<ModelConfig> ReadConfigFolder(
    const nlohmann::json& config,
    const nlohmann::json& generation = nlohmann::json()) {
  std::map<std::string, std::string> files = {
      {"d/config.json", WriteJson(config)},
      {"d/model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10)}};
  if (!generation.is_null()) {
    files["d/generation_config.json"] = WriteJson(generation);
  }
  return ReadConfigOf(OpenSafetensors("d", MemoryOpener(files)));
}

}  // namespace tiercel

#endif  // TIERCEL_MODELS_DECODER_CONFIG_FOR_TEST_H_
