// What flags make of a checkpoint's rotary settings.

#include "runtime/model/model.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "kernels/base/error.h"
#include "tests/golden.h"

namespace tiercel::model_test {
namespace {

using Type = RopeScaling::Type;

absl::StatusOr<ModelConfig> ConfigOf(const std::string& name,
                                     Model::Options options) {
  options.path = CheckpointPath(name + ".gguf");
  options.weights = false;
  const auto model =
      Model::Open(options, [](uint64_t, uint64_t) { return true; });
  if (!model.ok()) return model.status();
  return (*model)->config;
}

TEST(RopeFlagsTest, YarnStretchesTheContextThatIsSaid) {
  const ModelConfig plain = *ConfigOf("llama_chat", {});
  ASSERT_EQ(plain.rope_scaling.type, Type::kNone);
  const absl::StatusOr<ModelConfig> config =
      ConfigOf("llama_chat", {.rope_scaling = Type::kYarn,
                              .rope_scale = 4,
                              .yarn_orig_ctx = plain.context / 2});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.type, Type::kYarn);
  EXPECT_EQ(config->rope_scaling.factor, 4);
  EXPECT_EQ(config->rope_scaling.original_context, plain.context / 2);
  EXPECT_EQ(config->context, 2 * plain.context);
  EXPECT_EQ(config->rope_theta, plain.rope_theta);
  // Nor does it become shorter.
  EXPECT_EQ(ConfigOf("llama_chat", {.rope_scaling = Type::kYarn,
                                    .rope_scale = 4,
                                    .yarn_orig_ctx = 16})
                ->context,
            plain.context);
}

TEST(RopeFlagsTest, AScaleAloneIsOfThePositions) {
  const ModelConfig plain = *ConfigOf("llama_chat", {});
  const absl::StatusOr<ModelConfig> config =
      ConfigOf("llama_chat", {.rope_scale = 2.5, .rope_freq_base = 12345});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.type, Type::kLinear);
  EXPECT_EQ(config->rope_scaling.factor, 2.5);
  EXPECT_EQ(config->context, plain.context * 5 / 2);
  EXPECT_EQ(config->rope_theta, 12345);
}

TEST(RopeFlagsTest, WhatNobodySaysIsTheCheckpoints) {
  const ModelConfig yarn = *ConfigOf("llama_rope_yarn", {});
  ASSERT_EQ(yarn.rope_scaling.type, Type::kYarn);
  const int64_t original = yarn.rope_scaling.original_context;
  ASSERT_LT(original, yarn.context);
  const ModelConfig more = *ConfigOf("llama_rope_yarn", {.rope_scale = 100});
  EXPECT_EQ(more.rope_scaling.type, Type::kYarn);
  EXPECT_EQ(more.rope_scaling.factor, 100);
  EXPECT_EQ(more.rope_scaling.original_context, original);
  EXPECT_EQ(more.context, 100 * original);
  EXPECT_EQ(more.rope_scaling.beta_fast, yarn.rope_scaling.beta_fast);
}

TEST(RopeFlagsTest, NoneLeavesFrequenciesAsTheyAre) {
  ASSERT_EQ(ConfigOf("llama_rope_linear", {})->rope_scaling.type,
            Type::kLinear);
  ModelConfig none =
      *ConfigOf("llama_rope_linear", {.rope_scaling = Type::kNone});
  const std::vector<double> unscaled = MakeRopeFrequencies(none, {}).inv_freq;
  none.rope_scaling = {};
  EXPECT_EQ(unscaled, MakeRopeFrequencies(none, {}).inv_freq);
  const auto both =
      ConfigOf("llama_chat", {.rope_scaling = Type::kNone, .rope_scale = 2});
  EXPECT_EQ(CodeOf(both.status()), "invalid_rope");
}

}  // namespace
}  // namespace tiercel::model_test
