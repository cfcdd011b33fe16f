// Flags that override a checkpoint's rotary settings, and weights that must fit
// a memory budget.

#include "runtime/model/model.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "tests/golden.h"

namespace tiercel::model_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
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

// Factors that a checkpoint lists are no others' to scale; another kind of
// scaling has an attention factor of its own.
TEST(RopeFlagsTest, LongRopeIsReplacedOrStays) {
  const ModelConfig phi = *ConfigOf("phi3", {});
  ASSERT_EQ(phi.rope_scaling.type, Type::kLongRope);
  ASSERT_TRUE(phi.rope_scaling.attention_factor.has_value());
  const auto scaled = ConfigOf("phi3", {.rope_scale = 2});
  EXPECT_EQ(CodeOf(scaled.status()), "invalid_rope");
  const ModelConfig yarn =
      *ConfigOf("phi3", {.rope_scaling = Type::kYarn, .rope_scale = 8});
  EXPECT_EQ(yarn.rope_scaling.type, Type::kYarn);
  EXPECT_FALSE(yarn.rope_scaling.attention_factor.has_value());
  EXPECT_EQ(yarn.context, 8 * 64);
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

// Weights that are larger than the budget are refused before any is read; the
// error says what they need and what is free.
TEST(WeightsTest, MoreThanTheBudgetAreNotRead) {
  Model::Options options = {.path = CheckpointPath("llama_chat.gguf")};
  const int64_t bytes = OpenModel(options)->machine->memory().used();
  const auto refused = [](const Model::Options& some, Model* header) {
    bool read = false;
    const auto progress = [&](uint64_t, uint64_t) { return read = true; };
    const absl::Status status = header != nullptr
                                    ? header->Load(progress)
                                    : Model::Open(some, progress).status();
    EXPECT_EQ(CodeOf(status), "out_of_memory") << status;
    EXPECT_EQ(ClassOf(status), ErrorClass::kMemory);
    EXPECT_FALSE(read);
    return std::string(status.message());
  };
  options.machine.device_memory_bytes = bytes - 1;
  const std::string need = absl::StrCat("need ", bytes, " bytes");
  EXPECT_THAT(refused(options, nullptr),
              AllOf(HasSubstr(need),
                    HasSubstr(absl::StrCat(bytes - 1, " of ", bytes - 1))));
  options.weights = false;
  EXPECT_THAT(refused({}, OpenModel(options).get()), HasSubstr(need));

  // A limit that is less than the size of the simulated device.
  options.weights = true;
  options.machine.simulation = {{.bytes = 2 * bytes, .link = {1e9, 0}}};
  refused(options, nullptr);

  options.machine.device_memory_bytes = bytes;
  const auto fits = OpenModel(options);
  ASSERT_NE(fits, nullptr);
  // Models beside it share its budget.
  EXPECT_THAT(refused({.path = options.path, .beside = fits->machine}, nullptr),
              HasSubstr(absl::StrCat("0 of ", bytes)));
}

}  // namespace
}  // namespace tiercel::model_test
