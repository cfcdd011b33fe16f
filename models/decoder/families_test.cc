#include "models/decoder/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/status/error.h"
#include "models/decoder/config.h"
#include "models/decoder/config_for_test.h"
#include "models/format/files_for_test.h"
#include "models/format/gguf.h"
#include "models/format/gguf_writer_for_test.h"

namespace tiercel {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Reads a config.json of a small model with these fields besides.
absl::StatusOr<ModelConfig> ReadHf(const json& fields) {
  json config = {{"hidden_size", 64},      {"intermediate_size", 96},
                 {"num_hidden_layers", 6}, {"num_attention_heads", 4},
                 {"vocab_size", 100},      {"max_position_embeddings", 4096}};
  config.update(fields);
  return ReadConfigFolder(config);
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
  return ReadConfigOf(
      OpenGguf("m.gguf", MemoryOpener({{"m.gguf", w.Bytes()}})));
}

TEST(Families, AreFoundByTheirNames) {
  EXPECT_EQ(FindFamily("qwen3")->name, "qwen3");
  EXPECT_EQ(FindFamily("mistral"), nullptr);
  EXPECT_EQ(FindHfFamily("mistral")->family, "llama");
  EXPECT_EQ(FindHfFamily(""), nullptr);
  EXPECT_THAT(NamesOfFamilies(),
              HasSubstr("llama, qwen2, qwen3, qwen3moe, smollm3"));
  EXPECT_THAT(NamesOfHfFamilies(), HasSubstr("llama, mistral, qwen2, "));
}

// An error of an unknown architecture lists those that are known.
TEST(Families, ErrorsListThem) {
  EXPECT_THAT(std::string(ReadGguf("mamba").status().message()),
              HasSubstr("need " + NamesOfFamilies()));
  EXPECT_THAT(std::string(ReadHf({{"model_type", "mamba"}}).status().message()),
              HasSubstr("need " + NamesOfHfFamilies()));
}

// Writes the keys of a mixture of experts in GGUF, of which `key` is another
// value.
template <typename T = uint32_t>
absl::StatusOr<ModelConfig> ReadExperts(const std::string& key = "",
                                        T value = {}) {
  return ReadGguf("qwen3moe", [&](GgufWriter& w) {
    for (const auto& [name, usual] :
         {std::pair("expert_count", 8u), std::pair("expert_used_count", 3u)}) {
      if (key != name) w.Key<uint32_t>(std::string("qwen3moe.") + name, usual);
    }
    if (!key.empty()) w.Key<T>("qwen3moe." + key, value);
  });
}

TEST(Qwen3Moe, ExpertsOfGguf) {
  const auto without = ReadExperts();
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->architecture, "qwen3moe");
  EXPECT_EQ(without->experts.count, 8);
  EXPECT_EQ(without->experts.used, 3);
  EXPECT_EQ(without->experts.ffn, 32);  // its share of 96
  EXPECT_TRUE(without->experts.normed);
  EXPECT_EQ(without->experts.layers, std::vector<bool>(6, true));
  EXPECT_EQ(ReadExperts("expert_feed_forward_length", 48)->experts.ffn, 48);
  EXPECT_FALSE(ReadExperts("expert_weights_norm", false)->experts.normed);
  EXPECT_TRUE(ReadExperts("expert_weights_scale", 1.0f).ok());
  EXPECT_TRUE(ReadExperts("expert_gating_func", 1).ok());
  const auto by_layer = ReadGguf("qwen3moe", [](GgufWriter& w) {
    w.Key<uint32_t>("qwen3moe.expert_count", 8);
    w.Key<uint32_t>("qwen3moe.expert_used_count", 3);
    w.Array<uint32_t>("qwen3moe.expert_feed_forward_length",
                      std::vector<uint32_t>(6, 40));
  });
  EXPECT_EQ(by_layer->experts.ffn, 40);
}

TEST(Qwen3Moe, ExpertsOfGgufThatMakeNoModel) {
  const auto code = []<typename T>(const std::string& key, T value) {
    const auto config = ReadExperts<T>(key, value);
    return config.ok() ? "" : CodeOf(config.status());
  };
  for (const uint32_t count : {0u, 2u, 1025u}) {  // a row uses 3
    EXPECT_EQ(code("expert_count", count), "invalid_metadata") << count;
  }
  for (const uint32_t used : {0u, 9u}) {
    EXPECT_EQ(code("expert_used_count", used), "invalid_metadata") << used;
  }
  EXPECT_EQ(code("expert_feed_forward_length", 0u), "invalid_metadata");
  EXPECT_EQ(code("expert_feed_forward_length", 1u << 21), "invalid_metadata");
  EXPECT_EQ(CodeOf(ReadGguf("qwen3moe").status()), "invalid_metadata");
  const auto too_narrow = ReadGguf("qwen3moe", [](GgufWriter& w) {
    w.Key<uint32_t>("qwen3moe.expert_count", 128);
    w.Key<uint32_t>("qwen3moe.expert_used_count", 97);  // 96 columns in all
  });
  EXPECT_EQ(CodeOf(too_narrow.status()), "invalid_metadata");
  // These would be other arithmetic.
  EXPECT_EQ(code("expert_weights_scale", 2.5f), "unsupported_architecture");
  EXPECT_EQ(code("expert_gating_func", 2u), "unsupported_architecture");
  EXPECT_EQ(code("expert_shared_count", 1u), "unsupported_architecture");
  EXPECT_EQ(code("expert_group_count", 8u), "unsupported_architecture");
}

TEST(Qwen3Moe, OtherFamiliesHaveNoExperts) {
  const auto llama = ReadGguf(
      "llama", [](GgufWriter& w) { w.Key<uint32_t>("llama.expert_count", 8); });
  EXPECT_EQ(CodeOf(llama.status()), "unsupported_architecture");
}

json HfExperts(const json& changes = json::object()) {
  json config = {{"model_type", "qwen3_moe"},
                 {"num_experts", 16},
                 {"num_experts_per_tok", 4},
                 {"moe_intermediate_size", 48}};
  config.update(changes);
  return config;
}

TEST(Qwen3Moe, ExpertsOfConfigJson) {
  const auto plain = ReadHf(HfExperts());
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->architecture, "qwen3moe");
  EXPECT_EQ(plain->experts.count, 16);
  EXPECT_EQ(plain->experts.used, 4);
  EXPECT_EQ(plain->experts.ffn, 48);
  EXPECT_FALSE(plain->experts.normed);
  EXPECT_EQ(plain->experts.LayersBefore(6), 6);

  const auto mixed = ReadHf(HfExperts({{"decoder_sparse_step", 2},
                                       {"mlp_only_layers", {-1, 3, 7}},
                                       {"norm_topk_prob", true}}));
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_THAT(mixed->experts.layers,
              ElementsAre(false, true, false, false, false, true));
  EXPECT_TRUE(mixed->experts.normed);
  EXPECT_EQ(mixed->experts.LayersBefore(5), 1);
  EXPECT_FALSE(mixed->experts.Has(6));  // there is no such layer

  // Nulls are the defaults of transformers, as what is absent is.
  const auto nulls = ReadHf(HfExperts({{"num_experts", nullptr},
                                       {"num_experts_per_tok", nullptr},
                                       {"moe_intermediate_size", nullptr},
                                       {"norm_topk_prob", nullptr},
                                       {"decoder_sparse_step", nullptr},
                                       {"mlp_only_layers", nullptr}}));
  ASSERT_TRUE(nulls.ok()) << nulls.status();
  EXPECT_EQ(nulls->experts.count, 128);
  EXPECT_EQ(nulls->experts.used, 8);
  EXPECT_EQ(nulls->experts.ffn, 768);
  EXPECT_EQ(nulls->experts.LayersBefore(6), 6);
  // The name that transformers 5 writes.
  EXPECT_EQ(
      ReadHf(HfExperts({{"num_experts", nullptr}, {"num_local_experts", 32}}))
          ->experts.count,
      32);
  const auto dense = ReadHf(HfExperts({{"num_experts", 0}}));
  ASSERT_TRUE(dense.ok()) << dense.status();
  EXPECT_EQ(dense->experts.LayersBefore(6), 0);
}

TEST(Qwen3Moe, ExpertsOfConfigJsonThatMakeNoModel) {
  const auto code = [](const char* key, const json& value) {
    return HfCode(HfExperts({{key, value}}));
  };
  for (const json& value : {json(-1), json(3), json(1025), json("16")}) {
    EXPECT_EQ(code("num_experts", value), "invalid_metadata");
  }
  for (const json& value : {json(0), json(17), json(4.0)}) {
    EXPECT_EQ(code("num_experts_per_tok", value), "invalid_metadata");
  }
  EXPECT_THAT(
      std::string(
          ReadHf(HfExperts({{"num_experts_per_tok", 17}})).status().message()),
      HasSubstr("\"num_experts_per_tok\""));
  EXPECT_EQ(code("moe_intermediate_size", 0), "invalid_metadata");
  EXPECT_EQ(code("norm_topk_prob", 1), "invalid_metadata");
  EXPECT_EQ(code("decoder_sparse_step", 0), "invalid_metadata");
  for (const json& value :
       {json(3), json("3"), json::array({1.5}), json::array({"1"})}) {
    EXPECT_EQ(code("mlp_only_layers", value), "invalid_metadata") << value;
  }
}

// Absent is the family's number, null as many as query heads.
TEST(Families, HaveTheirNumbersOfKvHeads) {
  const auto kv_heads = [](const char* model_type, json fields) {
    fields.update({{"model_type", model_type},
                   {"hidden_size", 1024},
                   {"num_attention_heads", 64},
                   {"rope_parameters", {{"rope_type", "default"}}}});
    const auto config = ReadHf(fields);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? config->kv_heads : 0;
  };
  for (const auto& [model_type, usual] :
       {std::pair("llama", 64), std::pair("mistral", 8), std::pair("qwen2", 32),
        std::pair("qwen3", 32), std::pair("qwen3_moe", 4),
        std::pair("smollm3", 4), std::pair("granite", 64),
        std::pair("ministral3", 8), std::pair("phi3", 64)}) {
    EXPECT_EQ(kv_heads(model_type, {}), usual) << model_type;
    EXPECT_EQ(kv_heads(model_type, {{"num_key_value_heads", nullptr}}), 64);
    EXPECT_EQ(kv_heads(model_type, {{"num_key_value_heads", 2}}), 2);
  }
}

// The values of transformers' config classes.
TEST(Families, HaveTheirDefaults) {
  const struct {
    const char* model_type;
    int64_t context;
    float norm_eps;
    double rope_theta;
    int head_dim;  // with hidden size 64 and 4 heads
    int ffn;       // 0: there is none
  } families[] = {{"llama", 2048, 1e-6f, 1e4, 16, 0},
                  {"mistral", 131072, 1e-6f, 1e4, 16, 0},
                  {"qwen2", 32768, 1e-6f, 1e4, 16, 0},
                  {"qwen3", 32768, 1e-6f, 1e4, 128, 0},
                  {"qwen3_moe", 32768, 1e-6f, 1e4, 16, 6144},
                  {"smollm3", 32768, 1e-6f, 2e6, 16, 0},
                  {"granite", 2048, 1e-6f, 1e4, 16, 0},
                  {"granitemoehybrid", 2048, 1e-6f, 1e4, 16, 1024},
                  {"ministral3", 262144, 1e-5f, 1e6, 128, 0},
                  {"phi3", 4096, 1e-5f, 1e4, 16, 0}};
  for (const auto& family : families) {
    SCOPED_TRACE(family.model_type);
    json fields = {{"model_type", family.model_type},
                   {"max_position_embeddings", nullptr},
                   {"num_local_experts", 0},
                   {"layer_types", json::array()},
                   {"sliding_window", nullptr},
                   {"rope_parameters", {{"rope_type", "default"}}}};
    if (family.ffn > 0) fields["intermediate_size"] = nullptr;
    const auto config = ReadHf(fields);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->context, family.context);
    EXPECT_EQ(config->norm_eps, family.norm_eps);
    EXPECT_EQ(config->rope_theta, family.rope_theta);
    EXPECT_EQ(config->head_dim, family.head_dim);
    EXPECT_EQ(config->ffn, family.ffn > 0 ? family.ffn : 96);
    fields["intermediate_size"] = nullptr;
    EXPECT_EQ(HfCode(fields), family.ffn > 0 ? "" : "invalid_metadata");
  }
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
  const auto window = [&] { return ReadHf(config)->sliding_window; };
  EXPECT_EQ(window(), 0);
  config["use_sliding_window"] = true;
  EXPECT_EQ(window(), 1024);  // layers without RoPE have it
  config["no_rope_layers"] = {1, 1, 1, 1, 1, 1};
  EXPECT_EQ(window(), 0);
  config["use_sliding_window"] = false;
  config["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_EQ(window(), 1024);
  config["layer_types"] = {"full_attention"};
  EXPECT_EQ(window(), 0);
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

TEST(Granite4, IsServedWhereItIsDense) {
  const json fields = {
      {"model_type", "granitemoehybrid"}, {"intermediate_size", 80},
      {"shared_intermediate_size", 40},   {"num_local_experts", 0},
      {"layer_types", json::array()},     {"position_embedding_type", "rope"},
      {"residual_multiplier", 0.25}};
  const auto config = ReadHf(fields);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "granite");
  EXPECT_EQ(config->ffn, 40);
  EXPECT_EQ(config->residual_scale, 0.25f);
  EXPECT_THAT(config->rotated, IsEmpty());
  for (const json& other : {json("nope"), json(nullptr)}) {
    json unrotated = fields;
    unrotated["position_embedding_type"] = other;
    EXPECT_EQ(ReadHf(unrotated)->rotated, std::vector<bool>(6, false));
  }
  for (const auto& [key, refused] :
       {std::pair("num_local_experts", json(4)),
        std::pair("num_local_experts", json(nullptr)),
        std::pair("layer_types", json({"attention", "mamba"})),
        std::pair("layer_types", json(nullptr))}) {
    json hybrid = fields;
    hybrid[key] = refused;
    EXPECT_EQ(HfCode(hybrid), "unsupported_architecture") << key << refused;
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

const json kYarn = {{"rope_type", "yarn"},
                    {"rope_theta", 1e6},
                    {"factor", 16.0},
                    {"original_max_position_embeddings", 1024},
                    {"mscale", 1.0},
                    {"mscale_all_dim", 1.0},
                    {"llama_4_scaling_beta", 0.1}};

TEST(Ministral3, QueriesGrow) {
  const auto of_gguf = ReadGguf("mistral3", [](GgufWriter& w) {
    w.Key<std::string>("mistral3.rope.scaling.type", "yarn");
    w.Key<float>("mistral3.rope.scaling.factor", 16);
    w.Key<uint32_t>("mistral3.rope.scaling.original_context_length", 1024);
    w.Key<float>("mistral3.rope.scaling.yarn_log_multiplier", 1);
    w.Key<float>("mistral3.attention.temperature_scale", 0.1f);
  });
  const auto of_hf =
      ReadHf({{"model_type", "ministral3"}, {"rope_parameters", kYarn}});
  for (const auto& config : {of_hf, of_gguf}) {
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->architecture, "mistral3");
    EXPECT_EQ(config->context, 16384);
    EXPECT_EQ(config->rope_scaling.attention_factor, 1);
    EXPECT_EQ(config->QueryScale(1023), 1);
    EXPECT_EQ(config->NextQueryScale(0), 1024);
    EXPECT_EQ(config->NextQueryScale(1024), 2048);
    EXPECT_FLOAT_EQ(config->QueryScale(1024), 1 + 0.1f * std::log(2.0f));
    EXPECT_FLOAT_EQ(config->QueryScale(16383), 1 + 0.1f * std::log(16.0f));
  }
  EXPECT_EQ(ReadGguf("mistral3")->QueryScale(1 << 20), 1);
  EXPECT_EQ(ReadGguf("mistral3")->NextQueryScale(0),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ReadHf({{"model_type", "llama"}, {"rope_parameters", kYarn}})
                ->query_growth,
            0);
}

TEST(Ministral3, WhatIsMissingOrWrongIsRefused) {
  EXPECT_EQ(HfCode({{"model_type", "ministral3"}}), "invalid_metadata");
  for (const json& beta : {json("0.1"), json(-1), json(1e6)}) {
    json rope = kYarn;
    rope["llama_4_scaling_beta"] = beta;
    EXPECT_EQ(HfCode({{"model_type", "ministral3"}, {"rope_parameters", rope}}),
              "invalid_metadata")
        << beta;
  }
}

// The quotient of two magnitudes; GGUF has the second's multiplier alone.
TEST(Ministral3, AttentionFactorOfYarn) {
  json rope = kYarn;
  rope["mscale_all_dim"] = 0.5;
  const auto of_hf =
      ReadHf({{"model_type", "ministral3"}, {"rope_parameters", rope}});
  const auto of_gguf = ReadGguf("mistral3", [](GgufWriter& w) {
    w.Key<std::string>("mistral3.rope.scaling.type", "yarn");
    w.Key<float>("mistral3.rope.scaling.factor", 16);
    w.Key<float>("mistral3.rope.scaling.yarn_log_multiplier", 0.5f);
  });
  const double expected =
      (0.1 * std::log(16.0) + 1) / (0.05 * std::log(16.0) + 1);
  EXPECT_NEAR(of_hf->rope_scaling.attention_factor.value_or(0), expected,
              1e-12);
  EXPECT_NEAR(of_gguf->rope_scaling.attention_factor.value_or(0), expected,
              1e-12);
}

// A model that also sees has the one that writes inside.
TEST(Mistral3, TheTextsConfigIsWithin) {
  const json text = {{"hidden_size", 64},
                     {"intermediate_size", 96},
                     {"num_hidden_layers", 6},
                     {"num_attention_heads", 4},
                     {"vocab_size", 100},
                     {"eos_token_id", 2},
                     {"max_position_embeddings", 4096}};
  json config = {{"model_type", "mistral3"}, {"text_config", text}};
  EXPECT_EQ(ReadHf(config)->architecture, "llama");  // Mistral, if unnamed
  EXPECT_TRUE(ReadHf(config)->tied_embeddings);      // there is no other matrix
  EXPECT_THAT(ReadHf(config)->eos_ids, ElementsAre(2));
  config["text_config"]["tie_word_embeddings"] = false;
  EXPECT_FALSE(ReadHf(config)->tied_embeddings);
  config["eos_token_id"] = 3;
  EXPECT_THAT(ReadHf(config)->eos_ids, ElementsAre(3));
  config["text_config"]["model_type"] = "ministral3";
  config["text_config"]["rope_parameters"] = kYarn;
  EXPECT_EQ(ReadHf(config)->architecture, "mistral3");
  EXPECT_EQ(ReadHf(config)->query_growth, 0.1);
  config["text_config"]["hidden_size"] = "64";
  EXPECT_THAT(std::string(ReadHf(config).status().message()),
              HasSubstr("config.json: text_config: \"hidden_size\""));
  for (const char* type : {"gemma2", "mistral3"}) {
    config["text_config"]["model_type"] = type;
    EXPECT_EQ(HfCode(config), "unsupported_architecture") << type;
  }
  config["text_config"] = text;
  config["quantization_config"] = {{"quant_method", "fp8"}};
  EXPECT_EQ(HfCode(config), "unsupported_quantization");
  config.erase("quantization_config");
  for (const json& none : {json(nullptr), json(1), json::array()}) {
    config["text_config"] = none;
    EXPECT_EQ(HfCode(config), "invalid_metadata") << none;
  }
}

json LongRope() {
  return {{"type", "longrope"},
          {"short_factor", {1, 1, 1, 1, 1, 1.5}},
          {"long_factor", {1, 2, 3, 4, 5, 6.5}}};
}

// Heads have 16 elements, of which 12 are rotated.
TEST(Phi3, LongRopeHasTwoLists) {
  json config = {{"model_type", "phi3"},
                 {"partial_rotary_factor", 0.75},
                 {"rope_scaling", LongRope()},
                 {"max_position_embeddings", 131072}};
  const auto read = ReadHf(config);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rope_dims, 12);
  EXPECT_EQ(read->norm_eps, 1e-5f);
  EXPECT_EQ(read->context, 131072);
  const RopeScaling& scaling = read->rope_scaling;
  EXPECT_EQ(scaling.type, RopeScaling::Type::kLongRope);
  EXPECT_EQ(scaling.original_context, 4096);
  EXPECT_EQ(scaling.short_factors.back(), 1.5);
  EXPECT_EQ(scaling.long_factors.back(), 6.5);
  EXPECT_NEAR(scaling.attention_factor.value_or(0),
              std::sqrt(1 + std::log(32.0) / std::log(4096.0)), 1e-12);
  // The default counts more than what the scaling says.
  config["rope_scaling"]["original_max_position_embeddings"] = 2048;
  EXPECT_EQ(ReadHf(config)->rope_scaling.original_context, 4096);
  config["original_max_position_embeddings"] = 8192;
  EXPECT_EQ(ReadHf(config)->rope_scaling.original_context, 8192);
  config["rope_scaling"]["attention_factor"] = 1.25;
  EXPECT_EQ(ReadHf(config)->rope_scaling.attention_factor, 1.25);
  // Older names.
  for (const char* type : {"su", "yarn"}) {
    config["rope_scaling"]["type"] = type;
    EXPECT_EQ(ReadHf(config)->rope_scaling.type, RopeScaling::Type::kLongRope);
  }
}

TEST(Phi3, ListsThatDoNotFitAreRefused) {
  for (const char* key : {"short_factor", "long_factor"}) {
    for (const json& list :
         {json(nullptr), json::array(), json({1, 1, 1, 1, 1}),
          json({1, 1, 1, 1, 1, 0}), json({1, 1, 1, 1, 1, "1"}),
          json({1, 1, 1, 1, 1, 1e9}), json("1")}) {
      json scaling = LongRope();
      scaling[key] = list;
      EXPECT_EQ(HfCode({{"model_type", "phi3"},
                        {"partial_rotary_factor", 0.75},
                        {"rope_scaling", scaling}}),
                "invalid_metadata")
          << key << list;
    }
  }
}

// One length counts for all sessions with the same frequencies.
TEST(Phi3, ASessionsEndChoosesItsList) {
  json config = {{"model_type", "phi3"},
                 {"partial_rotary_factor", 0.75},
                 {"rope_scaling", LongRope()},
                 {"max_position_embeddings", 131072}};
  const ModelConfig phi = *ReadHf(config);
  EXPECT_EQ(phi.RopeLength(1), 0);
  EXPECT_EQ(phi.RopeLength(4096), 0);
  EXPECT_EQ(phi.RopeLength(4097), phi.RopeLength(131072));
  const RopeFactors factors = {.of_short = phi.rope_scaling.short_factors,
                               .of_long = phi.rope_scaling.long_factors};
  ModelConfig plain = phi;
  plain.rope_scaling = {};
  const RopeFrequencies unscaled = MakeRopeFrequencies(plain, {});
  for (const int64_t end : {4096, 4097}) {
    const RopeFrequencies rope =
        MakeRopeFrequencies(phi, factors, phi.RopeLength(end));
    EXPECT_EQ(rope.inv_freq[5],
              unscaled.inv_freq[5] / (end == 4096 ? 1.5 : 6.5));
    EXPECT_EQ(rope.attention_factor, phi.rope_scaling.attention_factor);
  }
}

// Converters of phi3 write no type; the tensors are there.
TEST(Phi3, GgufHasTensorsOfFactors) {
  const auto with = [](bool tensors, const std::string& type) {
    return ReadGguf("phi3", [=](GgufWriter& w) {
      w.Key<uint32_t>("phi3.rope.dimension_count", 12);
      w.Key<uint32_t>("phi3.rope.scaling.original_context_length", 64);
      w.Key<float>("phi3.rope.scaling.attn_factor", 1.25f);
      if (!type.empty()) w.Key<std::string>("phi3.rope.scaling.type", type);
      if (tensors) w.Tensor("rope_factors_long.weight", {6}, DType::kF32);
    });
  };
  for (const auto& config : {with(true, ""), with(false, "longrope")}) {
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->rope_scaling.type, RopeScaling::Type::kLongRope);
    EXPECT_EQ(config->rope_scaling.original_context, 64);
    EXPECT_EQ(config->rope_scaling.attention_factor, 1.25);
  }
  EXPECT_EQ(CodeOf(with(false, "").status()), "unsupported_rope_scaling");
}

}  // namespace
}  // namespace tiercel
