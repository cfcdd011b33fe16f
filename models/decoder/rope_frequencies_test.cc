#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "models/decoder/config_for_test.h"
#include "models/format/json.h"

namespace tiercel {
namespace {

using nlohmann::json;

json Golden() {
  std::ifstream in("tests/golden/rope.json");
  std::stringstream text;
  text << in.rdbuf();
  return ParseJson("rope.json", text.str()).value_or(json::object());
}

// A model with two heads and the rotary settings of a golden case.
ModelConfig ConfigOf(const json& golden) {
  const json config = {{"model_type", "llama"},
                       {"hidden_size", 2 * golden["head_dim"].get<int>()},
                       {"intermediate_size", 4},
                       {"num_hidden_layers", 1},
                       {"num_attention_heads", 2},
                       {"vocab_size", 4},
                       {"max_position_embeddings", golden["context"]},
                       {"rope_parameters", golden["rope_parameters"]}};
  const absl::StatusOr<ModelConfig> read = ReadConfigFolder(config);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.value_or(ModelConfig());
}

TEST(RopeFrequencies, EqualTransformers) {
  const json golden = Golden();
  ASSERT_EQ(golden["cases"].size(), 15u);
  for (const json& c : golden["cases"]) {
    SCOPED_TRACE(c["name"]);
    const ModelConfig config = ConfigOf(c);
    const RopeScaling& scaling = config.rope_scaling;
    const RopeFrequencies rope = MakeRopeFrequencies(
        config,
        {.of_short = scaling.short_factors, .of_long = scaling.long_factors},
        config.RopeLength(c.value("length", int64_t{0})));
    ASSERT_EQ(rope.inv_freq.size(), c["inv_freq"].size());
    // The golden values are computed in float: the exponent is off by a unit
    // in its last place, times ln(theta) in the power, and a blend's weight
    // by one, times up to `factor` in the result.
    const double tolerance = 0x1p-23 * (std::log(config.rope_theta) +
                                        config.rope_scaling.factor + 4);
    for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
      const auto want = c["inv_freq"][i].get<double>();
      EXPECT_NEAR(rope.inv_freq[i], want, want * tolerance) << i;
    }
    EXPECT_NEAR(rope.attention_factor, c["attention_factor"].get<double>(),
                1e-12);
  }
}

TEST(RopeFrequencies, WithoutScaling) {
  ModelConfig config;
  config.rope_theta = 10000;
  config.rope_dims = 4;
  const RopeFrequencies rope = MakeRopeFrequencies(config, {});
  ASSERT_EQ(rope.inv_freq.size(), 2u);
  EXPECT_EQ(rope.inv_freq[0], 1);
  EXPECT_NEAR(rope.inv_freq[1], 0.01, 1e-17);
  EXPECT_EQ(rope.attention_factor, 1);
}

TEST(RopeFrequencies, FactorsDivideAndStandForLlama3) {
  ModelConfig config;
  config.rope_theta = 10000;
  config.rope_dims = 4;
  const RopeFrequencies plain = MakeRopeFrequencies(config, {});
  config.rope_scaling.type = RopeScaling::Type::kLlama3;
  config.rope_scaling.factor = 8;
  config.rope_scaling.original_context = 16;
  const RopeFrequencies rope = MakeRopeFrequencies(config, {.all = {2, 4}});
  EXPECT_EQ(rope.inv_freq[0], plain.inv_freq[0] / 2);
  EXPECT_EQ(rope.inv_freq[1], plain.inv_freq[1] / 4);
}

// With one frequency per head pair, the extremes of llama3 by hand.
TEST(RopeFrequencies, Llama3KeepsShortAndDividesLongWaves) {
  ModelConfig config;
  config.rope_theta = 1e8;
  config.rope_dims = 4;
  config.rope_scaling.type = RopeScaling::Type::kLlama3;
  config.rope_scaling.factor = 8;
  config.rope_scaling.original_context = 8192;
  const RopeFrequencies rope = MakeRopeFrequencies(config, {});
  EXPECT_EQ(rope.inv_freq[0], 1);                  // wavelength 6
  EXPECT_NEAR(rope.inv_freq[1], 1e-4 / 8, 1e-18);  // wavelength 62832
}

}  // namespace
}  // namespace tiercel
