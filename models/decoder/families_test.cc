#include "models/decoder/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/status/error.h"
#include "models/decoder/config.h"
#include "models/format/files_for_test.h"
#include "models/format/gguf.h"
#include "models/format/gguf_writer_for_test.h"
#include "models/format/json.h"
#include "models/format/safetensors.h"

namespace tiercel {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<ModelConfig> Read(
    const absl::StatusOr<std::unique_ptr<Checkpoint>>& checkpoint) {
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return checkpoint.status();
  return ReadModelConfig(**checkpoint);
}

// Reads a config.json of a small model with these fields besides.
absl::StatusOr<ModelConfig> ReadHf(const json& fields) {
  json config = {{"hidden_size", 64},      {"intermediate_size", 96},
                 {"num_hidden_layers", 6}, {"num_attention_heads", 4},
                 {"vocab_size", 100},      {"max_position_embeddings", 4096}};
  config.update(fields);
  return Read(OpenSafetensors(
      "d", MemoryOpener({{"d/config.json", WriteJson(config)},
                         {"d/model.safetensors",
                          std::string("\2\0\0\0\0\0\0\0{}", 10)}})));
}
std::string HfCode(const json& fields) {
  const absl::StatusOr<ModelConfig> config = ReadHf(fields);
  return config.ok() ? "" : CodeOf(config.status());
}

// Reads the keys of a small GGUF model of a family, and those that `more`
// writes.
absl::StatusOr<ModelConfig> ReadGguf(
    const std::string& family,
    const std::function<void(GgufWriter&)>& more = [](GgufWriter&) {}) {
  GgufWriter w;
  w.Key<std::string>("general.architecture", family);
  w.Key<uint32_t>(family + ".context_length", 4096);
  w.Key<uint32_t>(family + ".embedding_length", 64);
  w.Key<uint32_t>(family + ".block_count", 6);
  w.Key<uint32_t>(family + ".feed_forward_length", 96);
  w.Key<uint32_t>(family + ".attention.head_count", 4);
  w.Key<float>(family + ".attention.layer_norm_rms_epsilon", 1e-5f);
  w.Array<std::string>("tokenizer.ggml.tokens",
                       std::vector<std::string>(8, "t"));
  more(w);
  return Read(OpenGguf("m.gguf", MemoryOpener({{"m.gguf", w.Bytes()}})));
}

TEST(Families, AreFoundByTheirNames) {
  EXPECT_EQ(FindFamily("qwen3")->name, "qwen3");
  EXPECT_EQ(FindFamily("mistral"), nullptr);
  EXPECT_EQ(FindHfFamily("mistral")->family, "llama");
  EXPECT_EQ(FindHfFamily(""), nullptr);
  EXPECT_THAT(NamesOfFamilies(), HasSubstr("llama, qwen2, qwen3, smollm3"));
  EXPECT_THAT(NamesOfHfFamilies(), HasSubstr("llama, mistral, qwen2, "));
}

// An error of an unknown architecture lists those that are known.
TEST(Families, ErrorsListThem) {
  EXPECT_THAT(std::string(ReadGguf("mamba").status().message()),
              HasSubstr("need " + NamesOfFamilies()));
  EXPECT_THAT(std::string(ReadHf({{"model_type", "mamba"}}).status().message()),
              HasSubstr("need " + NamesOfHfFamilies()));
}

TEST(SmolLm3, EveryFourthLayerIsNotRotated) {
  const std::vector<bool> fourth = {true, true, true, false, true, true};
  EXPECT_EQ(ReadGguf("smollm3")->rotated, fourth);
  const auto config = ReadHf({{"model_type", "smollm3"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rotated, fourth);
  EXPECT_EQ(config->rope_theta, 2e6);
  EXPECT_TRUE(config->tied_embeddings);
  EXPECT_TRUE(config->Rotates(2));
  EXPECT_FALSE(config->Rotates(3));
  EXPECT_THAT(ReadHf({{"model_type", "llama"}})->rotated, IsEmpty());
  EXPECT_TRUE(ReadHf({{"model_type", "llama"}})->Rotates(3));
}

TEST(SmolLm3, AConfigMaySayWhichLayersAreRotated) {
  json config = {{"model_type", "smollm3"}, {"no_rope_layer_interval", 3}};
  EXPECT_EQ(ReadHf(config)->rotated,
            (std::vector<bool>{true, true, false, true, true, false}));
  config["no_rope_layers"] = {0, 1, 1, 0, 1, 1, 0};
  EXPECT_EQ(ReadHf(config)->rotated,
            (std::vector<bool>{false, true, true, false, true, true}));
  for (const json& list :
       {json({1, 1, 1, 0, 1}), json({1, 1, 1, 0, 1, 2}),
        json({1, 1, 1, 0, 1, true}), json("1"), json::array()}) {
    config["no_rope_layers"] = list;
    EXPECT_EQ(HfCode(config), "invalid_metadata") << list;
  }
  config["no_rope_layers"] = nullptr;
  config["no_rope_layer_interval"] = 0;
  EXPECT_EQ(HfCode(config), "invalid_metadata");
}

TEST(SmolLm3, AWindowIsOffUnlessAFlagIsSet) {
  json config = {{"model_type", "smollm3"}, {"sliding_window", 1024}};
  EXPECT_EQ(HfCode(config), "");
  config["use_sliding_window"] = true;
  EXPECT_EQ(HfCode(config), "unsupported_architecture");
}

TEST(Granite, HasFourFactors) {
  const json fields = {{"model_type", "granite"},
                       {"embedding_multiplier", 12},
                       {"attention_multiplier", 0.015625},
                       {"residual_multiplier", 0.25},
                       {"logits_scaling", 8.0}};
  const auto of_gguf = ReadGguf("granite", [](GgufWriter& w) {
    w.Key<float>("granite.embedding_scale", 12);
    w.Key<float>("granite.attention.scale", 0.015625f);
    w.Key<float>("granite.residual_scale", 0.25f);
    w.Key<float>("granite.logit_scale", 8);
  });
  for (const auto& config : {ReadHf(fields), of_gguf}) {
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->embedding_scale, 12);
    EXPECT_EQ(config->attention_scale, 0.015625f);
    EXPECT_EQ(config->residual_scale, 0.25f);
    EXPECT_EQ(config->logit_scale, 0.125f);
  }
  json llama = fields;
  llama["model_type"] = "llama";
  EXPECT_EQ(ReadHf(llama)->residual_scale, 1);
  for (const char* key : {"embedding_multiplier", "attention_multiplier",
                          "residual_multiplier", "logits_scaling"}) {
    for (const json& value :
         {json(0), json(-1), json("1"), json(1e30), json(1e-30)}) {
      json config = fields;
      config[key] = value;
      EXPECT_EQ(HfCode(config), "invalid_metadata") << key << value;
    }
  }
}

// config.json then means 1; GGUF means the usual factor, and says by a key
// whether there is RoPE.
TEST(Granite, FactorsMayBeAbsent) {
  const auto config = ReadHf({{"model_type", "granite"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->attention_scale, 1);
  EXPECT_EQ(config->residual_scale, 1);
  EXPECT_EQ(ReadGguf("granite")->attention_scale, std::nullopt);
  EXPECT_EQ(ReadGguf("granite")->logit_scale, 1);
  const auto rotated = [](bool has_rope) {
    return ReadGguf("granite",
                    [=](GgufWriter& w) {
                      w.Key<float>("granite.attention.scale", 0);
                      w.Key<bool>("granite.rope.scaling.finetuned", has_rope);
                    })
        ->rotated;
  };
  EXPECT_THAT(rotated(true), IsEmpty());
  EXPECT_EQ(rotated(false), std::vector<bool>(6, false));
}

}  // namespace
}  // namespace tiercel
