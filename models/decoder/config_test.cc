#include "models/decoder/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "models/decoder/config_for_test.h"
#include "models/format/files_for_test.h"
#include "models/format/gguf.h"
#include "models/format/gguf_writer_for_test.h"
#include "models/format/json.h"
#include "models/format/safetensors.h"

// The names A14 ... and B12 are lines of the project's table of bad inputs.

namespace tiercel {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns the stable code of a reading's error; "" for success.
std::string CodeFor(const absl::StatusOr<ModelConfig>& config) {
  if (config.ok()) return "";
  EXPECT_EQ(ClassOf(config.status()), ErrorClass::kInput);
  return CodeOf(config.status());
}

// ---------------------------------------------------------------------------
// GGUF

// The keys of a GGUF model, each of which can be removed or replaced.
class Gguf {
 public:
  using Write = std::function<void(GgufWriter&)>;

  Gguf() {
    Set<uint32_t>("llama.context_length", 4096);
    Set<uint32_t>("llama.embedding_length", 64);
    Set<uint32_t>("llama.block_count", 2);
    Set<uint32_t>("llama.feed_forward_length", 96);
    Set<uint32_t>("llama.attention.head_count", 4);
    Set<float>("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    Set<std::string>("general.architecture", "llama");
    SetTokens(8);
  }
  template <typename T>
  Gguf& Set(const std::string& key, T value) {
    keys_[key] = [=](GgufWriter& w) { w.Key<T>(key, value); };
    return *this;
  }
  template <typename T>
  Gguf& SetArray(const std::string& key, std::vector<T> values) {
    keys_[key] = [=](GgufWriter& w) { w.Array<T>(key, values); };
    return *this;
  }
  Gguf& SetTokens(size_t count) {
    return SetArray("tokenizer.ggml.tokens",
                    std::vector<std::string>(count, "t"));
  }
  Gguf& Without(const std::string& key) {
    keys_.erase(key);
    return *this;
  }
  Gguf& Tensor(const std::string& name, std::vector<uint64_t> dims) {
    tensors_.push_back(
        [=](GgufWriter& w) { w.Tensor(name, dims, DType::kF16); });
    return *this;
  }
  absl::StatusOr<ModelConfig> Config() const {
    GgufWriter w;
    for (const auto& [key, write] : keys_) write(w);
    for (const Write& write : tensors_) write(w);
    return ReadConfigOf(
        OpenGguf("m.gguf", MemoryOpener({{"m.gguf", w.Bytes()}})));
  }
  std::string Code() const { return CodeFor(Config()); }

 private:
  std::map<std::string, Write> keys_;
  std::vector<Write> tensors_;
};

TEST(GgufConfig, DefaultsOfWhatIsAbsent) {
  const auto config = Gguf().Config();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->name, "");
  EXPECT_EQ(config->vocab, 8);
  EXPECT_EQ(config->hidden, 64);
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->kv_heads, 4);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->ffn, 96);
  EXPECT_EQ(config->context, 4096);
  EXPECT_EQ(config->norm_eps, 1e-5f);
  EXPECT_EQ(config->rope_theta, 10000);
  EXPECT_EQ(config->rope_dims, 16);
  EXPECT_EQ(config->rope_scaling.type, RopeScaling::Type::kNone);
  EXPECT_TRUE(config->tied_embeddings);
  EXPECT_THAT(config->eos_ids, IsEmpty());
}

TEST(GgufConfig, EveryKey) {
  Gguf file;
  file.Set<std::string>("general.name", "A Model");
  file.Set<uint64_t>("llama.attention.head_count_kv", 2);
  file.Set<uint32_t>("llama.attention.key_length", 32);
  file.Set<uint32_t>("llama.attention.value_length", 32);
  file.Set<uint32_t>("llama.rope.dimension_count", 24);
  file.Set<float>("llama.rope.freq_base", 500000);
  file.Set<uint32_t>("tokenizer.ggml.bos_token_id", 1);
  file.Set<uint32_t>("tokenizer.ggml.eos_token_id", 7);
  file.Set<uint32_t>("tokenizer.ggml.eot_token_id", 3);
  file.Set<uint32_t>("tokenizer.ggml.eom_token_id", 5);
  file.Tensor("token_embd.weight", {64, 8}).Tensor("output.weight", {64, 8});
  const auto config = file.Config();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name, "A Model");
  EXPECT_EQ(config->kv_heads, 2);
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->rope_dims, 24);
  EXPECT_EQ(config->rope_theta, 500000);
  EXPECT_FALSE(config->tied_embeddings);
  EXPECT_THAT(config->eos_ids, ElementsAre(3, 5, 7));
}

TEST(GgufConfig, CountsPerLayer) {
  const std::string heads = "llama.attention.head_count";
  const std::string kv = "llama.attention.head_count_kv";
  const std::string ffn = "llama.feed_forward_length";
  Gguf file;
  file.SetArray<int32_t>(heads, {4, 4}).SetArray<uint32_t>(kv, {2, 2});
  file.SetArray<int32_t>(ffn, {96, 96});
  const auto config = file.Config();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->kv_heads, 2);
  EXPECT_EQ(config->ffn, 96);
  EXPECT_EQ(Gguf().SetArray<int32_t>(kv, {2, 4}).Code(),
            "unsupported_architecture");
  EXPECT_EQ(Gguf().SetArray<int32_t>(kv, {2}).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().SetArray<int32_t>(kv, {}).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().SetArray<int32_t>(kv, {0, 0}).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().SetArray<int32_t>(kv, {-4, -4}).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().SetArray<float>(kv, {2, 2}).Code(), "invalid_metadata");
}

// The fuzzer found this: no layers, and a list with an element for none.
TEST(GgufConfig, CountsPerLayerWithoutLayers) {
  Gguf file;
  file.Without("llama.block_count");
  file.SetArray<uint32_t>("llama.attention.head_count", {});
  EXPECT_EQ(file.Code(), "invalid_metadata");
}

TEST(GgufConfig, A14Architecture) {
  const std::string key = "general.architecture";
  EXPECT_EQ(Gguf().Without(key).Code(), "unsupported_architecture");
  EXPECT_EQ(Gguf().Set<uint32_t>(key, 1).Code(), "unsupported_architecture");
  for (const std::string& name :
       {std::string(), std::string("mamba"), std::string("Llama"),
        std::string("llama\0", 6), std::string(1 << 20, 'a')}) {
    const auto config = Gguf().Set<std::string>(key, name).Config();
    EXPECT_EQ(CodeFor(config), "unsupported_architecture");
    EXPECT_LT(config.status().message().size(), 300u);
  }
}

TEST(GgufConfig, A15BlockCount) {
  const std::string key = "llama.block_count";
  EXPECT_EQ(Gguf().Set<uint32_t>(key, 512).Code(), "");
  EXPECT_EQ(Gguf().Set<int8_t>(key, 2).Code(), "");
  EXPECT_EQ(Gguf().Set<uint32_t>(key, 0).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<int32_t>(key, -1).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>(key, 513).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>(key, 1u << 31).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<float>(key, 2).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<bool>(key, true).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().SetArray<uint32_t>(key, {2}).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Without(key).Code(), "invalid_metadata");
  EXPECT_THAT(
      std::string(Gguf().Set<uint32_t>(key, 513).Config().status().message()),
      HasSubstr("\"llama.block_count\" is 513; need 1 to 512"));
}

TEST(GgufConfig, A15OtherCountsOutOfRange) {
  for (const char* key :
       {"llama.context_length", "llama.embedding_length",
        "llama.feed_forward_length", "llama.attention.head_count"}) {
    SCOPED_TRACE(key);
    EXPECT_EQ(Gguf().Without(key).Code(), "invalid_metadata");
    EXPECT_EQ(Gguf().Set<uint32_t>(key, 0).Code(), "invalid_metadata");
    EXPECT_EQ(Gguf().Set<int32_t>(key, -1).Code(), "invalid_metadata");
    EXPECT_EQ(Gguf().Set<uint64_t>(key, UINT64_MAX).Code(), "invalid_metadata");
    EXPECT_EQ(Gguf().Set<std::string>(key, "4").Code(), "invalid_metadata");
  }
}

TEST(GgufConfig, A16Heads) {
  const std::string heads = "llama.attention.head_count";
  const std::string kv = "llama.attention.head_count_kv";
  const std::string key_length = "llama.attention.key_length";
  EXPECT_EQ(Gguf().Set<uint32_t>(kv, 0).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>(kv, 3).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>(kv, 8).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>(heads, 5).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>(heads, 64).Code(), "invalid_metadata");  // 1
  EXPECT_EQ(Gguf().Set<uint32_t>(heads, 5).Set<uint32_t>(key_length, 16).Code(),
            "");
  EXPECT_EQ(Gguf().Set<uint32_t>(key_length, 15).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>(key_length, 0).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>(key_length, 1026).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>("llama.attention.value_length", 8).Code(),
            "unsupported_architecture");
  const std::string rope = "llama.rope.dimension_count";
  EXPECT_EQ(Gguf().Set<uint32_t>(rope, 16).Code(), "");
  EXPECT_EQ(Gguf().Set<uint32_t>(rope, 18).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>(rope, 15).Code(), "invalid_metadata");
  EXPECT_EQ(Gguf().Set<uint32_t>(rope, 0).Code(), "invalid_metadata");
  // The derived size of a head is too large.
  EXPECT_EQ(Gguf()
                .Set<uint32_t>("llama.embedding_length", 1 << 13)
                .Set<uint32_t>(heads, 2)
                .Code(),
            "invalid_metadata");
}

TEST(GgufConfig, A24EmbeddingRowsAndTokens) {
  EXPECT_EQ(Gguf().Tensor("token_embd.weight", {64, 8}).Code(), "");
  EXPECT_EQ(Gguf().Tensor("token_embd.weight", {64, 9}).Config()->vocab, 9);
  EXPECT_EQ(Gguf().Tensor("token_embd.weight", {64, 7}).Config()->vocab, 7);
  EXPECT_EQ(Gguf().SetTokens(0).Code(), "invalid_vocab");
  EXPECT_EQ(Gguf().Without("tokenizer.ggml.tokens").Code(), "invalid_vocab");
  const auto config = Gguf()
                          .Without("tokenizer.ggml.tokens")
                          .Tensor("token_embd.weight", {64, 9})
                          .Config();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocab, 9);
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id"}) {
    EXPECT_THAT(Gguf().Set<uint32_t>(key, 7).Config()->eos_ids, ElementsAre(7));
  }
}

// As in llama.cpp.
TEST(GgufConfig, IdsThatAreNoTokensAreNotUsed) {
  for (const std::string kind : {"bos", "eos", "eot", "eom"}) {
    const std::string key = "tokenizer.ggml." + kind + "_token_id";
    for (const Gguf& file :
         {Gguf().Set<uint32_t>(key, 8), Gguf().Set<int32_t>(key, -1),
          Gguf().Set<uint32_t>(key, 0xffffffffu),
          Gguf().Set<std::string>(key, "7"),
          Gguf().SetArray<uint32_t>(key, {7})}) {
      const auto config = file.Config();
      ASSERT_TRUE(config.ok()) << config.status();
      EXPECT_THAT(config->eos_ids, IsEmpty());
      EXPECT_THAT(config->warnings, ElementsAre(HasSubstr(key)));
    }
  }
}

TEST(GgufConfig, A28FloatsOutOfRange) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {0.0f, kNan, -1.0f, kInfinity, 1.0f}) {
    SCOPED_TRACE(value);
    EXPECT_EQ(Gguf().Set("llama.rope.freq_base", value).Code(),
              "invalid_metadata");
    EXPECT_EQ(
        Gguf().Set("llama.attention.layer_norm_rms_epsilon", value).Code(),
        "invalid_metadata");
  }
  EXPECT_EQ(Gguf().Without("llama.attention.layer_norm_rms_epsilon").Code(),
            "invalid_metadata");
  const std::string scaling = "llama.rope.scaling.";
  for (const std::string type : {"linear", "yarn"}) {
    Gguf file;
    file.Set<std::string>(scaling + "type", type);
    EXPECT_EQ(file.Code(), "invalid_metadata");  // no factor
    for (const float factor : {0.0f, kNan, -2.0f, kInfinity, 2e6f}) {
      EXPECT_EQ(file.Set(scaling + "factor", factor).Code(),
                "invalid_metadata");
    }
    EXPECT_EQ(file.Set(scaling + "factor", 4.0f).Code(), "");
  }
  for (const char* key : {"yarn_beta_fast", "yarn_beta_slow"}) {
    for (const float value : {0.0f, kNan, -1.0f, kInfinity, 2e6f}) {
      Gguf file;
      file.Set<std::string>(scaling + "type", "yarn");
      file.Set(scaling + "factor", 4.0f).Set(scaling + key, value);
      EXPECT_EQ(file.Code(), "invalid_metadata") << key << value;
    }
  }
}

TEST(GgufConfig, RopeScaling) {
  const std::string scaling = "llama.rope.scaling.";
  Gguf yarn;
  yarn.Set<std::string>(scaling + "type", "yarn").Set(scaling + "factor", 4.0f);
  yarn.Set<uint32_t>(scaling + "original_context_length", 2048);
  yarn.Set(scaling + "yarn_beta_fast", 16.0f);
  yarn.Set(scaling + "yarn_beta_slow", 2.0f);
  auto config = yarn.Config();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.type, RopeScaling::Type::kYarn);
  EXPECT_EQ(config->rope_scaling.factor, 4);
  EXPECT_EQ(config->rope_scaling.original_context, 2048);
  EXPECT_EQ(config->rope_scaling.beta_fast, 16);
  EXPECT_EQ(config->rope_scaling.beta_slow, 2);
  EXPECT_FALSE(config->rope_scaling.attention_factor.has_value());
  EXPECT_EQ(config->context, 8192);  // 4 x 2048, more than context_length
  yarn.Set(scaling + "yarn_attn_factor", 1.5f);
  EXPECT_EQ(yarn.Config()->rope_scaling.attention_factor, 1.5);
  EXPECT_EQ(yarn.Set(scaling + "yarn_ext_factor", 0.5f).Code(),
            "unsupported_rope_scaling");
  Gguf bare;
  bare.Set<std::string>(scaling + "type", "yarn").Set(scaling + "factor", 4.0f);
  EXPECT_EQ(bare.Config()->rope_scaling.original_context, 4096);
  EXPECT_EQ(bare.Config()->context, 16384);

  Gguf linear;
  linear.Set<std::string>(scaling + "type", "linear");
  linear.Set(scaling + "factor", 4.0f);
  config = linear.Config();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.type, RopeScaling::Type::kLinear);
  EXPECT_EQ(config->context, 4096);

  Gguf old;
  old.Set("llama.rope.scale_linear", 2.0f);
  config = old.Config();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.type, RopeScaling::Type::kLinear);
  EXPECT_EQ(config->rope_scaling.factor, 2);

  Gguf zero;  // as in llama.cpp, no scaling
  zero.Set("llama.rope.scaling.factor", 0.0f);
  config = zero.Config();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.type, RopeScaling::Type::kNone);

  Gguf none;
  none.Set<std::string>(scaling + "type", "none");
  EXPECT_EQ(none.Config()->rope_scaling.type, RopeScaling::Type::kNone);
  Gguf other;
  other.Set<std::string>(scaling + "type", "ntk");
  EXPECT_EQ(other.Code(), "unsupported_rope_scaling");
}

TEST(GgufConfig, WhatWeDoNotDoIsRefused) {
  EXPECT_EQ(Gguf().Set<uint32_t>("llama.expert_count", 8).Code(),
            "unsupported_architecture");
  EXPECT_EQ(Gguf().Set<uint32_t>("llama.expert_count", 0).Code(), "");
}

TEST(GgufConfig, SlidingWindow) {
  EXPECT_EQ(Gguf().Config()->sliding_window, 0);
  EXPECT_EQ(Gguf()
                .Set<uint32_t>("llama.attention.sliding_window", 4095)
                .Config()
                ->sliding_window,
            4095);
}

// ---------------------------------------------------------------------------
// config.json

json HfConfig() {
  return {{"model_type", "llama"},          {"hidden_size", 64},
          {"intermediate_size", 96},        {"num_hidden_layers", 2},
          {"num_attention_heads", 4},       {"vocab_size", 100},
          {"max_position_embeddings", 4096}};
}

// Returns the config with one field set; null removes it.
absl::StatusOr<ModelConfig> HfWith(const char* key, const json& value) {
  json config = HfConfig();
  config[key] = value;
  return ReadConfigFolder(config);
}
std::string HfCode(const char* key, const json& value) {
  return CodeFor(HfWith(key, value));
}

TEST(HfConfig, DefaultsOfWhatIsAbsent) {
  const auto config = ReadConfigFolder(HfConfig());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->vocab, 100);
  EXPECT_EQ(config->hidden, 64);
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->kv_heads, 4);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->ffn, 96);
  EXPECT_EQ(config->context, 4096);
  EXPECT_EQ(config->norm_eps, 1e-6f);
  EXPECT_EQ(config->rope_theta, 10000);
  EXPECT_EQ(config->rope_dims, 16);
  EXPECT_EQ(config->rope_scaling.type, RopeScaling::Type::kNone);
  EXPECT_FALSE(config->tied_embeddings);
  EXPECT_THAT(config->eos_ids, IsEmpty());
}

TEST(HfConfig, EveryField) {
  json fields = HfConfig();
  fields.update({{"model_type", "qwen3"},
                 {"num_key_value_heads", 2},
                 {"head_dim", 32},
                 {"rms_norm_eps", 1e-5},
                 {"rope_theta", 1000000},
                 {"rope_scaling", nullptr},
                 {"partial_rotary_factor", 0.5},
                 {"tie_word_embeddings", true},
                 {"hidden_act", "silu"},
                 {"use_sliding_window", false},
                 {"sliding_window", 128},
                 {"eos_token_id", 5}});
  const auto config = ReadConfigFolder(fields);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "qwen3");
  EXPECT_EQ(config->kv_heads, 2);
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->norm_eps, 1e-5f);
  EXPECT_EQ(config->rope_theta, 1e6);
  EXPECT_EQ(config->rope_dims, 32);  // a part is rotated in phi3 alone
  EXPECT_TRUE(config->tied_embeddings);
  EXPECT_THAT(config->eos_ids, ElementsAre(5));
  fields.erase("head_dim");
  EXPECT_EQ(ReadConfigFolder(fields)->head_dim, 128);
}

TEST(HfConfig, B12Architectures) {
  for (const char* type : {"llama", "qwen2", "qwen3", "mistral"}) {
    EXPECT_EQ(HfCode("model_type", type), "") << type;
  }
  EXPECT_EQ(HfWith("model_type", "mistral")->architecture, "llama");
  for (const json& type : {json("mixtral"), json("gemma2"), json(""),
                           json(nullptr), json(std::string(1 << 20, 'a'))}) {
    EXPECT_EQ(HfCode("model_type", type), "unsupported_architecture");
  }
}

TEST(HfConfig, B12MissingAndWrongFields) {
  for (const char* key :
       {"hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "vocab_size"}) {
    SCOPED_TRACE(key);
    EXPECT_EQ(HfCode(key, nullptr), "invalid_metadata");
    EXPECT_THAT(std::string(HfWith(key, nullptr).status().message()),
                HasSubstr(key));
    for (const json& value :
         {json("64"), json(64.0), json(true), json::array({64}), json(0),
          json(-1), json(UINT64_MAX), json(INT64_MAX), json(1e300)}) {
      EXPECT_EQ(HfCode(key, value), "invalid_metadata") << value;
    }
  }
  for (const json& value : {json("x"), json(0), json(-1e-6), json(1)}) {
    EXPECT_EQ(HfCode("rms_norm_eps", value), "invalid_metadata") << value;
  }
  for (const json& value : {json("x"), json(0), json(-1.0), json(1e300)}) {
    EXPECT_EQ(HfCode("rope_theta", value), "invalid_metadata") << value;
  }
  EXPECT_EQ(HfCode("tie_word_embeddings", 1), "invalid_metadata");
  EXPECT_EQ(HfCode("num_key_value_heads", 0), "invalid_metadata");
  EXPECT_EQ(HfCode("num_key_value_heads", 3), "invalid_metadata");
  EXPECT_EQ(HfCode("num_attention_heads", 5), "invalid_metadata");
  EXPECT_EQ(HfCode("head_dim", 15), "invalid_metadata");
  // Heads of other sizes are padded.
  EXPECT_EQ(HfWith("head_dim", 20)->head_dim, 24);
  EXPECT_EQ(HfWith("head_dim", 20)->HeadElements(), 20);
  EXPECT_EQ(HfWith("head_dim", 20)->rope_dims, 20);
  EXPECT_EQ(HfWith("head_dim", 24)->HeadElements(), 24);
  EXPECT_EQ(HfWith("head_dim", 24)->head_elements, 0);
  EXPECT_EQ(HfCode("head_dim", nullptr), "");
  EXPECT_EQ(HfCode("partial_rotary_factor", 0), "invalid_metadata");
  EXPECT_EQ(HfCode("partial_rotary_factor", 1.5), "invalid_metadata");
  EXPECT_EQ(CodeFor(ReadConfigFolder(json::array())), "invalid_metadata");
}

// Python writes and reads such numbers.
TEST(HfConfig, B12NotANumberIsRefusedWhereItIsRead) {
  const auto read = [](const std::string& field) {
    const std::string text = WriteJson(HfConfig());
    return ReadConfigOf(OpenSafetensors(
        "d",
        MemoryOpener(
            {{"d/config.json",
              absl::StrCat(text.substr(0, text.size() - 1), ",", field, "}")},
             {"d/model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10)}})));
  };
  EXPECT_TRUE(read(R"("time_step_limit":[0.0,Infinity],"x":NaN)").ok());
  for (const char* key : {"rope_theta", "rms_norm_eps", "head_dim"}) {
    for (const char* number : {"NaN", "Infinity", "-Infinity"}) {
      const auto config = read(absl::StrCat("\"", key, "\":", number));
      EXPECT_EQ(CodeFor(config), "invalid_metadata") << key << number;
      EXPECT_THAT(std::string(config.status().message()), HasSubstr(key));
    }
  }
}

TEST(HfConfig, B12EndOfTextIds) {
  EXPECT_THAT(HfWith("eos_token_id", 99)->eos_ids, ElementsAre(99));
  EXPECT_THAT(HfWith("eos_token_id", {9, 3, 9})->eos_ids, ElementsAre(3, 9));
  EXPECT_THAT(HfWith("eos_token_id", nullptr)->eos_ids, IsEmpty());
  EXPECT_THAT(HfWith("eos_token_id", 99)->warnings, IsEmpty());
  for (const json& value :
       {json(100), json(-1), json("2"), json(2.0), json(UINT64_MAX)}) {
    const auto none = HfWith("eos_token_id", value);
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_THAT(none->eos_ids, IsEmpty()) << value;
    EXPECT_THAT(none->warnings,
                ElementsAre(HasSubstr("config.json: \"eos_token_id\" is")));
    EXPECT_THAT(HfWith("eos_token_id", {1, value})->eos_ids, ElementsAre(1));
  }
  json config = HfConfig();
  config["eos_token_id"] = 1;
  EXPECT_THAT(ReadConfigFolder(config, {{"eos_token_id", {2, 4}}})->eos_ids,
              ElementsAre(2, 4));
  EXPECT_THAT(ReadConfigFolder(config, {{"eos_token_id", 2}})->eos_ids,
              ElementsAre(2));
  EXPECT_THAT(ReadConfigFolder(config, {{"top_p", 0.9}})->eos_ids,
              ElementsAre(1));
  EXPECT_THAT(ReadConfigFolder(config, {{"eos_token_id", -1}})->eos_ids,
              ElementsAre(1));
}

TEST(HfConfig, B12RopeSpellings) {
  const json llama3 = {{"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 1024}};
  json config = HfConfig();
  // transformers 4, from 2024 on.
  config["rope_theta"] = 500000.0;
  config["rope_scaling"] = llama3;
  config["rope_scaling"]["rope_type"] = "llama3";
  const auto newer4 = ReadConfigFolder(config);
  // transformers 4, before 2024.
  config["rope_scaling"].erase("rope_type");
  config["rope_scaling"]["type"] = "llama3";
  const auto older4 = ReadConfigFolder(config);
  // transformers 5.
  config = HfConfig();
  config["rope_parameters"] = llama3;
  config["rope_parameters"]["rope_type"] = "llama3";
  config["rope_parameters"]["rope_theta"] = 500000.0;
  const auto newest = ReadConfigFolder(config);
  for (const auto* read : {&newer4, &older4, &newest}) {
    ASSERT_TRUE(read->ok()) << read->status();
    const ModelConfig& c = **read;
    EXPECT_EQ(c.rope_theta, 500000);
    EXPECT_EQ(c.rope_scaling.type, RopeScaling::Type::kLlama3);
    EXPECT_EQ(c.rope_scaling.factor, 8);
    EXPECT_EQ(c.rope_scaling.low_freq_factor, 1);
    EXPECT_EQ(c.rope_scaling.high_freq_factor, 4);
    EXPECT_EQ(c.rope_scaling.original_context, 1024);
    EXPECT_EQ(c.context, 4096);
  }
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 7.0}};
  EXPECT_EQ(ReadConfigFolder(config)->rope_theta, 7);
  EXPECT_EQ(ReadConfigFolder(config)->rope_scaling.type,
            RopeScaling::Type::kNone);
}

TEST(HfConfig, B12RopeScalingErrors) {
  const auto code = [](const json& scaling) {
    return HfCode("rope_scaling", scaling);
  };
  EXPECT_EQ(code(nullptr), "");
  EXPECT_EQ(code(json::object()), "");
  EXPECT_EQ(code({{"type", "default"}}), "");
  EXPECT_EQ(code({{"type", "linear"}, {"factor", 2}}), "");
  for (const char* type : {"proportional", "mrope", ""}) {
    EXPECT_EQ(code({{"type", type}, {"factor", 2}}), "unsupported_rope_scaling")
        << type;
  }
  EXPECT_EQ(code({{"full_attention", {{"rope_type", "default"}}}}),
            "unsupported_rope_scaling");
  for (const json& scaling :
       {json("linear"), json(2), json::array({1}),
        json({{"type", 1}, {"factor", 2}}), json({{"type", "linear"}}),
        json({{"type", "linear"}, {"factor", "2"}}),
        json({{"type", "linear"}, {"factor", 0}}),
        json({{"type", "yarn"}, {"factor", 0}}),
        json({{"type", "yarn"}, {"factor", -4}}),
        json({{"type", "yarn"}, {"factor", 4}, {"beta_fast", -1}}),
        json({{"type", "yarn"}, {"factor", 4}, {"beta_slow", 64}}),
        json({{"type", "yarn"}, {"factor", 4}, {"attention_factor", 0}}),
        json({{"type", "yarn"}, {"factor", 4}, {"truncate", 1}}),
        json({{"type", "yarn"},
              {"factor", 4},
              {"original_max_position_embeddings", 0}}),
        json({{"type", "llama3"}, {"factor", 8}}),
        json({{"type", "llama3"},
              {"factor", 8},
              {"low_freq_factor", 4},
              {"high_freq_factor", 4}}),
        json({{"type", "llama3"},
              {"factor", 8},
              {"low_freq_factor", 0},
              {"high_freq_factor", 4}})}) {
    EXPECT_EQ(code(scaling), "invalid_metadata") << scaling;
  }
}

TEST(HfConfig, TheLengthHasOtherNamesAndADefault) {
  json config = HfConfig();
  config.erase("max_position_embeddings");
  EXPECT_EQ(ReadConfigFolder(config)->context, 2048);
  config["model_type"] = "qwen2";
  EXPECT_EQ(ReadConfigFolder(config)->context, 32768);
  config["model_type"] = "mistral";
  EXPECT_EQ(ReadConfigFolder(config)->context, 131072);
  for (const char* key : {"max_sequence_length", "n_positions", "seq_length",
                          "n_ctx", "model_max_length", "max_seq_len"}) {
    json other = config;
    other[key] = 512;
    EXPECT_EQ(ReadConfigFolder(other)->context, 512) << key;
    other["max_position_embeddings"] = 1024;
    EXPECT_EQ(ReadConfigFolder(other)->context, 1024) << key;
    other.erase("max_position_embeddings");
    for (const json& value : {json("64"), json(64.5), json(0), json(-1)}) {
      other[key] = value;
      EXPECT_EQ(CodeFor(ReadConfigFolder(other)), "invalid_metadata")
          << key << value;
    }
  }
  for (const json& value : {json("64"), json(64.0), json(0)}) {
    EXPECT_EQ(HfCode("max_position_embeddings", value), "invalid_metadata");
  }
}

TEST(HfConfig, DynamicScalingStretchesWhatASessionNeeds) {
  const json dynamic = {{"type", "dynamic"}, {"factor", 2.0}};
  const auto config = HfWith("rope_scaling", dynamic);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope_scaling.type, RopeScaling::Type::kDynamic);
  EXPECT_EQ(config->context, 8192);
  EXPECT_EQ(config->RopeLength(4096), 0);
  EXPECT_EQ(config->RopeLength(6000), 6000);
  EXPECT_EQ(HfCode("rope_scaling", {{"type", "dynamic"}}), "invalid_metadata");
}

TEST(HfConfig, YarnStretchesTheContext) {
  const json yarn = {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"original_max_position_embeddings", 4096}};
  EXPECT_EQ(HfWith("rope_scaling", yarn)->context, 16384);
  json config = HfConfig();
  config["rope_scaling"] = yarn;
  config["max_position_embeddings"] = 16384;
  EXPECT_EQ(ReadConfigFolder(config)->context, 16384);
  // Without a factor it is the ratio of the two lengths.
  config["rope_scaling"].erase("factor");
  EXPECT_EQ(ReadConfigFolder(config)->rope_scaling.factor, 4);
}

TEST(HfConfig, B12SlidingWindows) {
  json config = HfConfig();
  const auto window = [&] { return ReadConfigFolder(config)->sliding_window; };
  config["sliding_window"] = 1024;
  config["model_type"] = "qwen2";
  EXPECT_EQ(window(), 0);  // off by default there
  config["use_sliding_window"] = true;
  EXPECT_EQ(window(), 0);  // the first 28 layers have none
  config["max_window_layers"] = 2;
  EXPECT_EQ(window(), 0);
  config["max_window_layers"] = 1;
  EXPECT_EQ(window(), 1024);
  config["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_EQ(window(), 0);
  config["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_EQ(window(), 1024);
  config.erase("sliding_window");
  EXPECT_EQ(window(), 4096);
  config["sliding_window"] = nullptr;
  EXPECT_EQ(window(), 0);
  config["use_sliding_window"] = false;
  config["sliding_window"] = 1024;
  EXPECT_EQ(window(), 0);
  config["layer_types"] = {"linear_attention", "full_attention"};
  EXPECT_EQ(CodeFor(ReadConfigFolder(config)), "unsupported_architecture");
}

// As transformers: some families attend to everything whatever a config says,
// others do not ask which layers are listed.
TEST(HfConfig, B12WindowsByFamily) {
  const json listed = {"full_attention", "full_attention"};
  const auto window = [&](const char* type, const json& fields) {
    json config = HfConfig();
    config["model_type"] = type;
    config["rope_parameters"] = {{"rope_type", "default"}};
    config["shared_intermediate_size"] = 8;
    config["num_local_experts"] = 0;
    config["layer_types"] = listed;
    config.update(fields);
    const auto read = ReadConfigFolder(config);
    EXPECT_TRUE(read.ok()) << type << read.status();
    return read.ok() ? read->sliding_window : -1;
  };
  for (const char* type : {"llama", "granite", "granitemoehybrid"}) {
    EXPECT_EQ(window(type, {{"sliding_window", 64}}), 0) << type;
  }
  for (const char* type : {"mistral", "phi3", "ministral3"}) {
    EXPECT_EQ(window(type, {{"sliding_window", 64}}), 64) << type;
    EXPECT_EQ(window(type, {{"sliding_window", nullptr}}), 0) << type;
    const int64_t usual = std::string(type) == "mistral" ? 4096 : 0;
    EXPECT_EQ(window(type, json::object()), usual) << type;
  }
  EXPECT_EQ(window("qwen3_moe", {{"sliding_window", 64}}), 0);
  EXPECT_EQ(window("qwen3_moe", {{"use_sliding_window", true}}), 4096);
}

TEST(HfConfig, WhatWeDoNotDoIsRefused) {
  for (const char* method : {"gptq", "awq"}) {
    const auto config =
        HfWith("quantization_config", {{"quant_method", method}, {"bits", 4}});
    EXPECT_EQ(CodeFor(config), "unsupported_quantization");
    EXPECT_THAT(std::string(config.status().message()),
                HasSubstr(absl::StrCat(
                    "config.json: the weights are quantised by \"", method,
                    "\" (\"quantization_config\"); need F32, "
                    "F16 or BF16 weights: take the checkpoint that "
                    "this one was made from, or a GGUF file")));
  }
  for (const json& unnamed : {json({{"bits", 4}}), json({{"quant_method", 8}}),
                              json::array({1}), json("awq")}) {
    EXPECT_EQ(HfCode("quantization_config", unnamed),
              "unsupported_quantization");
  }
  EXPECT_EQ(HfCode("quantization_config", nullptr), "");
  EXPECT_EQ(HfCode("hidden_act", "gelu"), "unsupported_architecture");
  EXPECT_EQ(HfCode("hidden_act", "swish"), "");
}

}  // namespace
}  // namespace tiercel
