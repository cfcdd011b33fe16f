#include "models/decoder/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lib/status/error.h"
#include "models/format/files_for_test.h"
#include "models/format/gguf.h"
#include "models/format/gguf_writer_for_test.h"
#include "models/format/json.h"
#include "models/format/safetensors.h"

// The names A23 and A32 are lines of the project's table of bad inputs.

namespace tiercel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Progress = absl::FunctionRef<bool(uint64_t, uint64_t)>;
constexpr auto kNoProgress = [](uint64_t, uint64_t) { return true; };

struct Tensor {
  std::vector<uint64_t> dims;  // the contiguous one first
  DType type = DType::kF32;
  std::string data = "";  // none: zeros
  bool unread = false;    // its type, F32, becomes IQ2_XXS in the file
};
using Tensors = std::map<std::string, Tensor>;

// The tensors that a llama of one layer, 4 tokens, 32 features and 2 heads of
// 16 elements on one KV head needs in a GGUF file.
Tensors Needed() {
  Tensors tensors;
  tensors["token_embd.weight"] = {{32, 4}};
  tensors["blk.0.attn_norm.weight"] = {{32}};
  tensors["blk.0.attn_q.weight"] = {{32, 32}};
  tensors["blk.0.attn_k.weight"] = {{32, 16}};
  tensors["blk.0.attn_v.weight"] = {{32, 16}};
  tensors["blk.0.attn_output.weight"] = {{32, 32}};
  tensors["blk.0.ffn_norm.weight"] = {{32}};
  tensors["blk.0.ffn_gate.weight"] = {{32, 64}};
  tensors["blk.0.ffn_up.weight"] = {{32, 64}};
  tensors["blk.0.ffn_down.weight"] = {{64, 32}};
  tensors["output_norm.weight"] = {{32}};
  return tensors;
}

std::string Numbers(size_t count, float first) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return {reinterpret_cast<const char*>(numbers.data()), count * sizeof(float)};
}

absl::StatusOr<LoadedWeights> LoadFrom(
    const absl::StatusOr<std::unique_ptr<Checkpoint>>& checkpoint,
    Progress progress) {
  if (!checkpoint.ok()) return checkpoint.status();
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(**checkpoint);
  if (!config.ok()) return config.status();
  const absl::StatusOr<std::unique_ptr<Stream>> stream =
      Stream::Create({.threads = 1});
  if (!stream.ok()) return stream.status();
  return LoadWeights(**checkpoint, *config, **stream, progress);
}

absl::StatusOr<LoadedWeights> Load(const Tensors& tensors,
                                   const std::string& architecture = "llama",
                                   Progress progress = kNoProgress,
                                   uint32_t rope_dims = 16) {
  GgufWriter w;
  const auto key = [&](const char* name) { return architecture + name; };
  w.Key<std::string>("general.architecture", architecture);
  w.Key<uint32_t>(key(".context_length"), 64);
  w.Key<uint32_t>(key(".embedding_length"), 32);
  w.Key<uint32_t>(key(".block_count"), 1);
  w.Key<uint32_t>(key(".feed_forward_length"), 64);
  w.Key<uint32_t>(key(".attention.head_count"), 2);
  w.Key<uint32_t>(key(".attention.head_count_kv"), 1);
  w.Key<float>(key(".attention.layer_norm_rms_epsilon"), 1e-5f);
  w.Key<uint32_t>(key(".rope.dimension_count"), rope_dims);
  if (architecture == "qwen3moe") {
    w.Key<uint32_t>(key(".expert_count"), 3);
    w.Key<uint32_t>(key(".expert_used_count"), 2);
    w.Key<uint32_t>(key(".expert_feed_forward_length"), 40);
  }
  w.Array<std::string>("tokenizer.ggml.tokens", {"a", "b", "c", "d"});
  for (const auto& [name, tensor] : tensors) {
    w.Tensor(name, tensor.dims, tensor.type, tensor.data);
  }
  std::string bytes = w.Bytes();
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.unread) continue;
    const std::string named = ByteWriter().Text(name).bytes();
    bytes[bytes.find(named) + named.size() + 4 + 8 * tensor.dims.size()] = 16;
  }
  return LoadFrom(OpenGguf("m", MemoryOpener({{"m", bytes}})), progress);
}

// Expects an input error that names the tensor.
void ExpectError(const absl::StatusOr<LoadedWeights>& loaded,
                 const std::string& code, const std::string& name) {
  EXPECT_EQ(CodeOf(loaded.status()), code) << name;
  EXPECT_EQ(ClassOf(loaded.status()), ErrorClass::kInput) << name;
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(name));
}

TEST(LoadWeights, NeedsNoMoreThanTheArchitecture) {
  const auto loaded = Load(Needed());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->warnings, IsEmpty());
  EXPECT_EQ(loaded->weights.layers.size(), 1u);
}

// A GGUF llama rotates neighbours among the rotated rows of a head; Tiercel
// rotates its halves. Rows that are not rotated stay.
TEST(LoadWeights, RotaryRowsAreHalvesOfWhatIsRotated) {
  std::vector<float> rows(32);
  std::iota(rows.begin(), rows.end(), 0.0f);
  Tensors tensors = Needed();
  tensors["blk.0.attn_q.bias"] = {
      {32},
      DType::kF32,
      std::string(reinterpret_cast<const char*>(rows.data()),
                  rows.size() * sizeof(float))};
  const auto order = [&](uint32_t rope_dims) {
    const auto loaded = Load(tensors, "llama", kNoProgress, rope_dims);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    std::vector<float> loaded_rows;
    if (!loaded.ok()) return loaded_rows;
    const DeviceArray<float>& bias = loaded->weights.layers[0].q_bias;
    loaded_rows.assign(HostAddress(bias.data()), HostAddress(bias.data()) + 32);
    return loaded_rows;
  };
  EXPECT_THAT(order(16), ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9,
                                     11, 13, 15, 16, 18, 20, 22, 24, 26, 28, 30,
                                     17, 19, 21, 23, 25, 27, 29, 31));
  EXPECT_THAT(order(8), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7, 8, 9, 10, 11, 12,
                                    13, 14, 15, 16, 18, 20, 22, 17, 19, 21, 23,
                                    24, 25, 26, 27, 28, 29, 30, 31));
}

TEST(LoadWeights, A23MissingTensors) {
  for (const auto& [name, tensor] : Needed()) {
    Tensors tensors = Needed();
    tensors.erase(name);
    ExpectError(Load(tensors), "missing_tensor", name);
  }
  // Other architectures need more tensors.
  ExpectError(Load(Needed(), "qwen3"), "missing_tensor",
              "blk.0.attn_q_norm.weight");
}

TEST(LoadWeights, A23ShapesThatAreNotTheConfigs) {
  Tensors all = Needed();
  all["output.weight"] = {{32, 4}};
  all["blk.0.attn_q.bias"] = {{32}};
  all["rope_freqs.weight"] = {{8}, DType::kF32, Numbers(8, 1)};
  ASSERT_TRUE(Load(all).ok()) << Load(all).status();
  for (const auto& [name, tensor] : all) {
    Tensors tensors = all;
    tensors[name] = {.dims = tensor.dims, .type = tensor.type};
    tensors[name].dims[0] += 32;
    ExpectError(Load(tensors), "invalid_shape", name);
    tensors[name] = tensor;
    tensors[name].dims.insert(tensors[name].dims.begin(), 1);
    ExpectError(Load(tensors), "invalid_shape", name);
  }
}

// The tensors of a layer with three experts.
Tensors NeededWithExperts() {
  Tensors tensors = Needed();
  for (const char* name : {"gate", "up", "down"}) {
    tensors.erase("blk.0.ffn_" + std::string(name) + ".weight");
  }
  tensors["blk.0.attn_q_norm.weight"] = {{16}};
  tensors["blk.0.attn_k_norm.weight"] = {{16}};
  tensors["blk.0.ffn_gate_inp.weight"] = {{32, 3}};
  tensors["blk.0.ffn_gate_exps.weight"] = {{32, 40, 3}};
  tensors["blk.0.ffn_up_exps.weight"] = {{32, 40, 3}};
  tensors["blk.0.ffn_down_exps.weight"] = {{40, 32, 3}};
  return tensors;
}

TEST(LoadWeights, ExpertsAreNeededAndHaveTheirShapes) {
  const Tensors all = NeededWithExperts();
  const auto loaded = Load(all, "qwen3moe");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->warnings, IsEmpty());
  const ExpertWeights& experts = loaded->weights.layers[0].experts;
  EXPECT_EQ(experts.gate.rows(), 3 * 48);  // 40 rows are two panels and a half
  EXPECT_EQ(experts.down.rows(), 3 * 32);
  EXPECT_EQ(loaded->weights.layers[0].gate.rows(), 0);
  for (const auto& [name, tensor] : all) {
    Tensors tensors = all;
    tensors.erase(name);
    ExpectError(Load(tensors, "qwen3moe"), "missing_tensor", name);
    for (size_t i = 0; i < tensor.dims.size(); ++i) {
      tensors[name] = tensor;
      tensors[name].dims[i] += 32;
      if (name == "token_embd.weight" && i == 1) continue;  // the vocabulary
      ExpectError(Load(tensors, "qwen3moe"), "invalid_shape", name);
    }
  }
  // A dense feed-forward beside them is not used.
  Tensors more = all;
  more["blk.0.ffn_gate.weight"] = {{32, 64}};
  const auto unused = Load(more, "qwen3moe");
  ASSERT_TRUE(unused.ok()) << unused.status();
  EXPECT_THAT(unused->warnings, ElementsAre(HasSubstr("blk.0.ffn_gate")));
}

// A token reads two of three experts, and the router.
TEST(LoadWeights, ATokenReadsItsExpertsAlone) {
  const auto loaded = Load(NeededWithExperts(), "qwen3moe");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Weights& weights = loaded->weights;
  const ExpertWeights& experts = weights.layers[0].experts;
  const int64_t all =
      experts.gate.bytes() + experts.up.bytes() + experts.down.bytes();
  EXPECT_EQ(experts.bytes_per_token(weights.experts),
            experts.router.bytes() + all / 3 * 2);
  EXPECT_EQ(weights.bytes() - weights.bytes_per_token(), all / 3);
  // Two rows are expected to use 8/3 experts.
  WeightSizes sizes = {.bytes_per_token = 1000, .expert_bytes = 600};
  EXPECT_DOUBLE_EQ(sizes.MoreOfRows(weights.experts, 1), 1);
  EXPECT_NEAR(sizes.MoreOfRows(weights.experts, 2), 1 + 0.6 / 3, 1e-12);
  EXPECT_EQ(WeightSizes().MoreOfRows({}, 9), 1);
}

TEST(LoadWeights, A23TypesThatDoNotServe) {
  for (const char* name : {"output_norm.weight", "blk.0.attn_norm.weight"}) {
    Tensors tensors = Needed();
    tensors[name].type = DType::kBF16;
    EXPECT_TRUE(Load(tensors).ok()) << name;
    tensors[name].type = DType::kQ8_0;
    ExpectError(Load(tensors), "unsupported_type", name);
  }
}

TEST(LoadWeights, A23TensorsOfNoUseAreAWarning) {
  Tensors tensors = Needed();
  tensors["blk.1.attn_norm.weight"] = {{32}};
  tensors["vision.weight"] = {{1}};
  const auto loaded = Load(tensors);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->warnings,
              ElementsAre(testing::AllOf(HasSubstr("blk.1.attn_norm.weight"),
                                         HasSubstr("vision.weight"))));
}

TEST(LoadWeights, A23UnreadTensorsMatterWhereTheyAreNeeded) {
  Tensors tensors = Needed();
  tensors["vision.weight"] = {.dims = {256}, .unread = true};
  EXPECT_TRUE(Load(tensors).ok());
  for (const char* name :
       {"blk.0.attn_q.weight", "blk.0.attn_q.bias", "output.weight",
        "output_norm.weight", "rope_freqs.weight"}) {
    tensors = Needed();
    tensors[name].unread = true;
    if (tensors[name].dims.empty()) tensors[name].dims = {32};
    ExpectError(Load(tensors), "unsupported_type", name);
    EXPECT_THAT(std::string(Load(tensors).status().message()),
                HasSubstr("got type IQ2_XXS, need F32, F16, BF16, Q8_0, "));
  }
}

// Frequencies are divided by these.
TEST(LoadWeights, A28RotaryFactorsOutOfRange) {
  for (const float first : {0.0f, -1.0f, 1e7f}) {
    Tensors tensors = Needed();
    tensors["rope_freqs.weight"] = {{8}, DType::kF32, Numbers(8, first)};
    ExpectError(Load(tensors), "invalid_metadata", "rope_freqs");
  }
}

// The values of a folder's tensor, F16, which are all the same.
struct FolderTensor {
  std::vector<int> shape;
  std::string value = std::string(2, '\0');
};
using FolderTensors = std::map<std::string, FolderTensor>;

// The tensors that a llama as of Needed() has in a folder.
FolderTensors NeededOfFolder() {
  const std::string layer = "model.layers.0.";
  return {{"model.embed_tokens.weight", {{4, 32}}},
          {layer + "input_layernorm.weight", {{32}}},
          {layer + "self_attn.q_proj.weight", {{32, 32}}},
          {layer + "self_attn.k_proj.weight", {{16, 32}}},
          {layer + "self_attn.v_proj.weight", {{16, 32}}},
          {layer + "self_attn.o_proj.weight", {{32, 32}}},
          {layer + "post_attention_layernorm.weight", {{32}}},
          {layer + "mlp.gate_proj.weight", {{64, 32}}},
          {layer + "mlp.up_proj.weight", {{64, 32}}},
          {layer + "mlp.down_proj.weight", {{32, 64}}},
          {"model.norm.weight", {{32}}}};
}

// Loads a folder with these tensors, whose config.json has these fields besides
// the usual ones.
absl::StatusOr<LoadedWeights> LoadFolder(
    const FolderTensors& tensors,
    const nlohmann::json& fields = nlohmann::json::object()) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    size_t count = 1;
    for (const int dim : tensor.shape) count *= static_cast<size_t>(dim);
    for (size_t i = 0; i < count; ++i) data += tensor.value;
    header[name] = {{"dtype", "F16"},
                    {"shape", tensor.shape},
                    {"data_offsets", {begin, data.size()}}};
  }
  nlohmann::json config = {{"model_type", "llama"},
                           {"hidden_size", 32},
                           {"intermediate_size", 64},
                           {"num_hidden_layers", 1},
                           {"num_attention_heads", 2},
                           {"num_key_value_heads", 1},
                           {"vocab_size", 4},
                           {"max_position_embeddings", 64},
                           {"tie_word_embeddings", false}};
  config.update(fields);
  const std::string text = WriteJson(header);
  const std::string file =
      ByteWriter().Put<uint64_t>(text.size()).Raw(text).Raw(data).bytes();
  return LoadFrom(
      OpenSafetensors("d", MemoryOpener({{"d/config.json", WriteJson(config)},
                                         {"d/model.safetensors", file}})),
      kNoProgress);
}

// Safetensors has other tensor names, and this output is not tied.
TEST(LoadWeights, A23SafetensorsWithoutAnOutput) {
  FolderTensors tensors = NeededOfFolder();
  ExpectError(LoadFolder(tensors), "missing_tensor", "lm_head.weight");
  tensors["lm_head.weight"] = {{4, 32}};
  const auto loaded = LoadFolder(tensors);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  tensors["lm_head.weight"] = {{5, 32}};
  ExpectError(LoadFolder(tensors), "invalid_shape", "lm_head.weight");

  // A model saved without its head, or within one that also sees.
  tensors["lm_head.weight"] = {{4, 32}};
  for (const auto& [prefix, head] :
       {std::pair("", ""),
        std::pair("language_model.model.", "language_model."),
        std::pair("model.language_model.", ""),
        std::pair("language_model.", "")}) {
    FolderTensors renamed;
    for (const auto& [name, tensor] : tensors) {
      const bool of_model = name.substr(0, 6) == "model.";
      renamed[of_model ? prefix + name.substr(6) : head + name] = tensor;
    }
    const auto named = LoadFolder(renamed);
    ASSERT_TRUE(named.ok()) << named.status();
    EXPECT_THAT(named->warnings, IsEmpty());
    renamed.erase(std::string(prefix) + "layers.0.mlp.up_proj.weight");
    ExpectError(LoadFolder(renamed), "missing_tensor",
                std::string(prefix) + "layers.0.mlp.up_proj.weight");
  }
}

// As in transformers, whatever the config or the family says of tied ones.
TEST(LoadWeights, AnOutputThatDiffersFromTheEmbeddingIsUsed) {
  const std::string one("\x00\x3c", 2);
  const auto output_rows = [](const FolderTensors& tensors,
                              const char* model_type = "llama") {
    const auto loaded = LoadFolder(
        tensors, {{"model_type", model_type}, {"tie_word_embeddings", true}});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? loaded->weights.separate_output.rows() : -1;
  };
  FolderTensors tensors = NeededOfFolder();
  EXPECT_EQ(output_rows(tensors), 0);
  tensors["lm_head.weight"] = {{4, 32}};
  EXPECT_EQ(output_rows(tensors), 0);
  tensors["lm_head.weight"] = {{4, 32}, one};
  EXPECT_EQ(output_rows(tensors), 4);
  EXPECT_EQ(output_rows(tensors, "smollm3"), 4);
  tensors["model.embed_tokens.weight"] = {{4, 32}, one};
  EXPECT_EQ(output_rows(tensors), 0);
  tensors["lm_head.weight"] = {{5, 32}, one};
  ExpectError(LoadFolder(tensors, {{"tie_word_embeddings", true}}),
              "invalid_shape", "lm_head.weight");
}

// Returns the terms that are loaded of a folder with the tensors of all, of a
// model with these fields.
std::vector<std::string> TermsOf(const nlohmann::json& fields) {
  const std::string layer = "model.layers.0.";
  FolderTensors tensors = NeededOfFolder();
  tensors["lm_head.weight"] = {{4, 32}};
  tensors[layer + "self_attn.q_norm.weight"] = {{16}};
  tensors[layer + "self_attn.k_norm.weight"] = {{16}};
  size_t optional = 2;
  for (const auto& [name, rows] :
       {std::pair("self_attn.q_proj", 32), std::pair("self_attn.k_proj", 16),
        std::pair("self_attn.v_proj", 16), std::pair("self_attn.o_proj", 32),
        std::pair("mlp.gate_proj", 64), std::pair("mlp.up_proj", 64),
        std::pair("mlp.down_proj", 32)}) {
    tensors[layer + name + ".bias"] = {{rows}};
    ++optional;
  }
  const auto loaded = LoadFolder(tensors, fields);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return {};
  using W = LayerWeights;
  std::vector<std::string> terms;
  for (const auto& [name, term] :
       {std::pair("q", &W::q_bias), std::pair("k", &W::k_bias),
        std::pair("v", &W::v_bias), std::pair("o", &W::o_bias),
        std::pair("gate", &W::gate_bias), std::pair("up", &W::up_bias),
        std::pair("down", &W::down_bias), std::pair("q norm", &W::q_norm),
        std::pair("k norm", &W::k_norm)}) {
    if ((loaded->weights.layers[0].*term).size() > 0) terms.push_back(name);
  }
  const std::string unused =
      loaded->warnings.empty() ? "" : loaded->warnings.front();
  EXPECT_THAT(unused, HasSubstr(std::to_string(optional - terms.size()) +
                                " tensors are not part"));
  return terms;
}

// Others in a folder are left, as in transformers.
TEST(LoadWeights, TermsAreThoseOfTheConfigOrTheFamily) {
  for (const char* type : {"llama", "mistral", "granite", "smollm3"}) {
    EXPECT_THAT(TermsOf({{"model_type", type}}), IsEmpty()) << type;
  }
  nlohmann::json both = {{"attention_bias", true}, {"mlp_bias", true}};
  for (const char* type : {"llama", "granite", "smollm3"}) {
    both["model_type"] = type;
    EXPECT_THAT(TermsOf(both),
                ElementsAre("q", "k", "v", "o", "gate", "up", "down"))
        << type;
  }
  both["model_type"] = "mistral";
  EXPECT_THAT(TermsOf(both), IsEmpty());
  EXPECT_THAT(TermsOf({{"model_type", "llama"}, {"mlp_bias", true}}),
              ElementsAre("gate", "up", "down"));
  both["model_type"] = "qwen2";
  EXPECT_THAT(TermsOf(both), ElementsAre("q", "k", "v"));
  both.update({{"model_type", "qwen3"}, {"head_dim", 16}});
  EXPECT_THAT(TermsOf(both),
              ElementsAre("q", "k", "v", "o", "q norm", "k norm"));
  both["attention_bias"] = false;
  EXPECT_THAT(TermsOf(both), ElementsAre("q norm", "k norm"));
}

// Q, K and V in one tensor, as the gate and the other, are the same weights.
TEST(LoadWeights, FusedTensorsAreTheirParts) {
  Tensors apart = Needed();
  Tensors fused = Needed();
  const auto join =
      [&](const std::vector<std::pair<std::string, uint64_t>>& parts,
          const std::string& name, const std::string& suffix) {
        const bool matrix = suffix == ".weight";
        uint64_t rows = 0;
        std::string all;
        for (const auto& [part, count] : parts) {
          const size_t elements = count * (matrix ? 32 : 1);
          Tensor tensor = {{count},
                           DType::kF32,
                           Numbers(elements, static_cast<float>(all.size()))};
          if (matrix) tensor.dims = {32, count};
          rows += count;
          all += tensor.data;
          fused.erase("blk.0." + part + suffix);
          apart["blk.0." + part + suffix] = std::move(tensor);
        }
        Tensor& whole = fused["blk.0." + name + suffix];
        whole = {{rows}, DType::kF32, all};
        if (matrix) whole.dims = {32, rows};
      };
  for (const char* suffix : {".weight", ".bias"}) {
    join({{"attn_q", 32}, {"attn_k", 16}, {"attn_v", 16}}, "attn_qkv", suffix);
    join({{"ffn_gate", 64}, {"ffn_up", 64}}, "ffn_up", suffix);
  }
  for (const char* architecture : {"llama", "qwen2"}) {
    const auto one = Load(apart, architecture);
    const auto other = Load(fused, architecture);
    ASSERT_TRUE(one.ok()) << one.status();
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_THAT(other->warnings, IsEmpty());
    using W = LayerWeights;
    const W& a = one->weights.layers[0];
    const W& b = other->weights.layers[0];
    for (const auto matrix : {&W::q, &W::k, &W::v, &W::gate, &W::up}) {
      ASSERT_EQ((a.*matrix).rows(), (b.*matrix).rows());
      std::vector<float> ours(32), theirs(32);
      for (int64_t row = 0; row < (a.*matrix).rows(); ++row) {
        (a.*matrix).UnpackRow(row, ours.data());
        (b.*matrix).UnpackRow(row, theirs.data());
        EXPECT_EQ(ours, theirs) << row;
      }
    }
    for (const auto bias :
         {&W::q_bias, &W::k_bias, &W::v_bias, &W::gate_bias, &W::up_bias}) {
      const auto values = [&](const W& of) {
        const float* const data = HostAddress((of.*bias).data());
        return std::vector<float>(data, data + (of.*bias).size());
      };
      EXPECT_FALSE(values(a).empty());
      EXPECT_EQ(values(a), values(b));
    }
  }
  fused["blk.0.attn_qkv.weight"].dims = {32, 65};
  ExpectError(Load(fused), "missing_tensor",
              "blk.0.attn_q.weight: not in the checkpoint, nor in "
              "blk.0.attn_qkv.weight, need shape [32, 32]");
  fused["blk.0.attn_qkv.weight"].unread = true;
  ExpectError(Load(fused), "unsupported_type", "blk.0.attn_qkv.weight");
}

TEST(LoadWeights, A32LoadingStopsAfterAnyTensor) {
  size_t stops = 0;
  while (true) {
    size_t calls = 0;
    const auto loaded =
        Load(Needed(), "llama", [&](uint64_t done, uint64_t total) {
          EXPECT_LE(done, total);
          return calls++ != stops;
        });
    if (loaded.ok()) break;
    ASSERT_EQ(ClassOf(loaded.status()), ErrorClass::kCancelled);
    EXPECT_EQ(calls, ++stops);
  }
  EXPECT_EQ(stops, Needed().size());
}

// The rows of all ranks, one after the other, are those of the whole, whatever
// the type and the order in the file, and they take the measured bytes.
TEST(LoadShares, EachRankHasItsRows) {
  for (const char* name :
       {"llama_gqa.gguf", "llama_gqa", "qwen2", "llama_mha", "llama_bias.gguf",
        "quant32/q4_1.gguf", "qwen3moe.gguf", "qwen3moe", "qwen3moe_mixed"}) {
    const std::string path = std::string("tests/golden/checkpoints/") + name;
    if (!std::filesystem::exists(path)) {
      ADD_FAILURE() << path;
      continue;
    }
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const auto config = ReadModelConfig(**checkpoint);
    ASSERT_TRUE(config.ok()) << config.status();
    const auto split = ModelSplit::Create(*config, 2);
    ASSERT_TRUE(split.ok()) << split.status();
    HeapMemory memory[2];
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<Stream*> of_ranks;
    for (HeapMemory& of : memory) {
      streams.push_back(*Stream::Create({.threads = 2, .memory = &of}));
      of_ranks.push_back(streams.back().get());
    }
    const auto whole =
        LoadWeights(**checkpoint, *config, *streams.front(), kNoProgress);
    ASSERT_TRUE(whole.ok()) << whole.status();
    const int64_t before = memory[0].used();
    const auto shares =
        LoadShares(**checkpoint, *config, *split, of_ranks, kNoProgress);
    ASSERT_TRUE(shares.ok()) << shares.status();
    const auto sizes = MeasureShares(**checkpoint, *config, *split);
    ASSERT_TRUE(sizes.ok());
    EXPECT_EQ(memory[0].used() - before, (*sizes)[0].bytes) << name;
    EXPECT_EQ(memory[1].used(), (*sizes)[1].bytes) << name;
    const auto counts = MeasureShares(**checkpoint, *config, *split,
                                      [](int64_t bytes) { return bytes % 2; });
    ASSERT_TRUE(counts.ok());
    EXPECT_EQ((*counts)[1].bytes, 0) << name;  // no array has odd bytes
    const auto expect_rows = [&](const PackedMatrix& all, int64_t first,
                                 const PackedMatrix& some) {
      ASSERT_EQ(all.cols(), some.cols());
      std::vector<float> a(static_cast<size_t>(all.cols()));
      std::vector<float> b(a.size());
      for (int64_t row = 0; row < some.rows(); ++row) {
        all.UnpackRow(first + row, a.data());
        some.UnpackRow(row, b.data());
        EXPECT_EQ(a, b) << name << " row " << first + row;
      }
    };
    for (int rank = 0; rank < 2; ++rank) {
      const auto at = static_cast<size_t>(rank);
      const Weights& own = shares->weights[at];
      EXPECT_EQ(own.bytes_per_token(), (*sizes)[at].bytes_per_token) << name;
      EXPECT_EQ(own.output().rows(), split->vocab()[at].size());
      expect_rows(whole->weights.output(), split->vocab()[at].begin,
                  own.output());
      expect_rows(whole->weights.embedding, 0, own.embedding);
      for (size_t i = 0; i < own.layers.size(); ++i) {
        const LayerWeights& all = whole->weights.layers[i];
        const LayerWeights& some = own.layers[i];
        const int64_t dim = config->head_dim;
        const int64_t kv = split->kv_heads(rank).begin * dim;
        const int64_t q = split->query_heads(rank).begin * dim;
        EXPECT_EQ(some.k.rows(), split->kv_heads(rank).size() * dim);
        EXPECT_EQ(some.q.rows(), split->query_heads(rank).size() * dim);
        expect_rows(all.q, q, some.q);
        expect_rows(all.k, kv, some.k);
        expect_rows(all.v, kv, some.v);
        expect_rows(all.o, split->hidden()[at].begin, some.o);
        expect_rows(all.gate, split->ffn()[at].begin, some.gate);
        expect_rows(all.up, split->ffn()[at].begin, some.up);
        expect_rows(all.down, split->hidden()[at].begin, some.down);
        expect_rows(all.experts.router, 0, some.experts.router);
        const auto expect_experts = [&](const PackedMatrix& wholes,
                                        int64_t size, const Columns& part,
                                        const PackedMatrix& parts) {
          for (int e = 0; e < config->experts.count; ++e) {
            expect_rows(
                wholes, e * ExpertStride(size) + part.begin,
                parts.Borrow(e * ExpertStride(part.size()), part.size()));
          }
        };
        if (some.experts.empty()) continue;
        const Columns& ffn = split->expert_ffn()[at];
        const Columns& hidden = split->hidden()[at];
        expect_experts(all.experts.gate, config->experts.ffn, ffn,
                       some.experts.gate);
        expect_experts(all.experts.up, config->experts.ffn, ffn,
                       some.experts.up);
        expect_experts(all.experts.down, config->hidden, hidden,
                       some.experts.down);
        ASSERT_EQ(some.q_bias.empty(), all.q_bias.empty());
        for (size_t b = 0; b < some.q_bias.size(); ++b) {
          EXPECT_EQ(HostAddress(some.q_bias.data())[b],
                    HostAddress(all.q_bias.data())[b + static_cast<size_t>(q)]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tiercel
