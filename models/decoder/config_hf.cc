#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "models/decoder/config_readers.h"
#include "models/decoder/families.h"
#include "models/format/json.h"

namespace tiercel {
namespace {

using nlohmann::json;

constexpr const char* kConfigFile = "config.json";
constexpr const char* kGenerationFile = "generation_config.json";
constexpr const char* kTextConfig = "text_config";
// The output matrix, beside a model or within one that also sees.
constexpr const char* kOutputs[] = {"lm_head.weight",
                                    "language_model.lm_head.weight"};

// Reads the fields of one object; `where` names it in errors. A null field
// counts as absent, as in transformers. The first failure stays; values read
// after it are meaningless.
class JsonReader {
 public:
  JsonReader(const json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  const absl::Status& status() const { return status_; }

  const json* Find(const char* key) const {
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  bool IsNull(const char* key) const {
    const auto it = object_.find(key);
    return it != object_.end() && it->is_null();
  }

  std::optional<int64_t> Int(const char* key, int64_t least, int64_t most) {
    const json* value = Find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number_integer()) {
      const bool fits = !value->is_number_unsigned() ||
                        value->get<uint64_t>() <= uint64_t{INT64_MAX};
      const int64_t number = fits ? value->get<int64_t>() : 0;
      if (fits && number >= least && number <= most) return number;
    }
    Wrong(key, *value, absl::StrCat("an integer from ", least, " to ", most));
    return std::nullopt;
  }
  int64_t NeedInt(const char* key, int64_t most) {
    if (Find(key) == nullptr) {
      Fail("invalid_metadata", absl::StrCat("\"", key, "\" is missing"));
    }
    return Int(key, 1, most).value_or(1);
  }
  std::optional<double> Float(const char* key) {
    const json* value = Find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) return value->get<double>();
    Wrong(key, *value, "a number");
    return std::nullopt;
  }
  double NeedFloat(const char* key) {
    if (Find(key) == nullptr) {
      Fail("invalid_metadata", absl::StrCat("\"", key, "\" is missing"));
    }
    return Float(key).value_or(1);
  }
  std::optional<bool> Bool(const char* key) {
    const json* value = Find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_boolean()) return value->get<bool>();
    Wrong(key, *value, "true or false");
    return std::nullopt;
  }
  std::optional<std::string> String(const char* key) {
    const json* value = Find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_string()) return value->get<std::string>();
    Wrong(key, *value, "a string");
    return std::nullopt;
  }

  void Wrong(const char* key, const json& value, std::string_view needed) {
    Fail("invalid_metadata",
         absl::StrCat("\"", key, "\" is ", Quoted(WriteJson(value)), "; need ",
                      std::string(needed)));
  }
  void Fail(std::string_view code, std::string_view message) {
    if (!status_.ok()) return;
    status_ =
        InputError(code, absl::StrCat(where_, ": ", std::string(message)));
  }

 private:
  const json& object_;
  const std::string where_;
  absl::Status status_;
};

void ReadYarn(JsonReader& rope, int64_t context, RopeScaling* scaling) {
  scaling->factor = rope.Float("factor").value_or(
      static_cast<double>(context) /
      static_cast<double>(scaling->original_context));
  // Zero means the default here, as in transformers.
  const auto nonzero = [&](const char* key) {
    const std::optional<double> value = rope.Float(key);
    return value == 0 ? std::nullopt : value;
  };
  scaling->beta_fast = nonzero("beta_fast").value_or(32);
  scaling->beta_slow = nonzero("beta_slow").value_or(1);
  scaling->truncate = rope.Bool("truncate").value_or(true);
  scaling->attention_factor = rope.Float("attention_factor");
  const std::optional<double> mscale = nonzero("mscale");
  const std::optional<double> mscale_all = nonzero("mscale_all_dim");
  if (!scaling->attention_factor.has_value() && mscale && mscale_all) {
    scaling->attention_factor = YarnMagnitude(scaling->factor, *mscale) /
                                YarnMagnitude(scaling->factor, *mscale_all);
  }
}

// Reads one of longrope's lists, with a factor for each of `count` frequencies.
std::vector<double> ReadFactors(JsonReader& rope, const char* key, int count) {
  const json* const list = rope.Find(key);
  if (list == nullptr) {
    rope.Fail("invalid_metadata", absl::StrCat("\"", key, "\" is missing"));
    return {};
  }
  const auto is_factor = [](const json& of) {
    return of.is_number() && of > 0 && of <= ConfigLimits::kRopeFactor;
  };
  if (!list->is_array() || list->size() != static_cast<size_t>(count) ||
      !std::all_of(list->begin(), list->end(), is_factor)) {
    rope.Wrong(key, *list,
               absl::StrCat(count, " numbers above 0, at most ",
                            ConfigLimits::kRopeFactor));
    return {};
  }
  return list->get<std::vector<double>>();
}

void ReadLongRope(JsonReader& rope, const ModelConfig& config,
                  RopeScaling* scaling) {
  const auto original = static_cast<double>(scaling->original_context);
  scaling->type = RopeScaling::Type::kLongRope;
  scaling->factor = rope.Float("factor").value_or(
      static_cast<double>(config.context) / original);
  scaling->attention_factor = rope.Float("attention_factor");
  if (!scaling->attention_factor.has_value() && scaling->factor > 1) {
    scaling->attention_factor =
        std::sqrt(1 + std::log(scaling->factor) / std::log(original));
  }
  const int count = config.rope_dims / 2;
  scaling->short_factors = ReadFactors(rope, "short_factor", count);
  scaling->long_factors = ReadFactors(rope, "long_factor", count);
}

// Rotary settings: transformers up to 4 writes rope_theta beside an object
// rope_scaling (or null), from 5 on everything into rope_parameters. The kind
// is "rope_type", before that "type".
absl::Status ReadRope(JsonReader& top, const HfFamily& family,
                      const Family& traits, ModelConfig* config) {
  static const json kNone = json::object();
  const json* object = top.Find("rope_scaling");
  const char* where = "rope_scaling";
  if (object == nullptr || object->empty()) {
    object = top.Find("rope_parameters");
    where = "rope_parameters";
  }
  if (object == nullptr && family.needs_rope) {
    top.Fail("invalid_metadata", absl::StrCat("\"", where, "\" is missing"));
    return top.status();
  }
  if (object == nullptr) object = &kNone;
  JsonReader rope(*object, absl::StrCat(kConfigFile, ": ", where));
  if (!object->is_object()) {
    top.Wrong(where, *object, "an object or null");
    return top.status();
  }
  for (const auto& [key, value] : object->items()) {
    if (!value.is_object()) continue;
    return InputError("unsupported_rope_scaling",
                      absl::StrCat(kConfigFile, ": ", where, ": ", Quoted(key),
                                   " differs by kind of layer"));
  }
  config->rope_theta =
      rope.Float("rope_theta")
          .value_or(top.Float("rope_theta").value_or(family.rope_theta));
  const double part =
      rope.Float("partial_rotary_factor")
          .value_or(top.Float("partial_rotary_factor").value_or(1));
  if (!(part > 0 && part <= 1)) {
    rope.Fail("invalid_metadata",
              absl::StrCat("\"partial_rotary_factor\" is ", part,
                           "; need above 0, at most 1"));
    return rope.status();
  }
  config->rope_dims =
      static_cast<int>(config->head_dim * (family.partial ? part : 1));

  RopeScaling& scaling = config->rope_scaling;
  // The top-level key wins, as in transformers, and so does its default.
  const std::optional<int64_t> inner =
      rope.Int("original_max_position_embeddings", 1, ConfigLimits::kContext);
  const int64_t original = family.original_context > 0
                               ? family.original_context
                               : inner.value_or(config->context);
  scaling.original_context =
      top.Int("original_max_position_embeddings", 1, ConfigLimits::kContext)
          .value_or(original);
  if (traits.grows_queries) {
    config->query_growth = rope.Float("llama_4_scaling_beta").value_or(0);
    config->query_step = scaling.original_context;
  }
  const std::string type =
      rope.String("rope_type")
          .value_or(rope.String("type").value_or("default"));
  if (type == "linear") {
    scaling.type = RopeScaling::Type::kLinear;
    scaling.factor = rope.NeedFloat("factor");
  } else if (type == "llama3") {
    scaling.type = RopeScaling::Type::kLlama3;
    scaling.factor = rope.NeedFloat("factor");
    scaling.low_freq_factor = rope.NeedFloat("low_freq_factor");
    scaling.high_freq_factor = rope.NeedFloat("high_freq_factor");
  } else if (type == "longrope" || type == "su" ||
             (type == "yarn" && rope.Find("long_factor") != nullptr)) {
    ReadLongRope(rope, *config, &scaling);
  } else if (type == "yarn") {
    scaling.type = RopeScaling::Type::kYarn;
    ReadYarn(rope, config->context, &scaling);
  } else if (type == "dynamic") {
    scaling.type = RopeScaling::Type::kDynamic;
    scaling.factor = rope.NeedFloat("factor");
    scaling.original_context = config->context;
  } else if (type != "default") {
    rope.Fail("unsupported_rope_scaling",
              absl::StrCat("type ", Quoted(type),
                           "; need default, linear, dynamic, llama3, yarn or "
                           "longrope"));
  }
  return rope.status();
}

// Reads which layers have RoPE, where a family has some without: from a list of
// 1 and 0, or every so manyth layer.
void ReadRotated(JsonReader& top, int usual_interval, ModelConfig* config) {
  if (usual_interval == 0) return;
  const int64_t interval =
      top.Int("no_rope_layer_interval", 1, ConfigLimits::kLayers)
          .value_or(usual_interval);
  config->rotated = RotatedLayers(config->layers, interval);
  const json* const list = top.Find("no_rope_layers");
  if (list == nullptr) return;
  const auto is_flag = [](const json& of) {
    return of.is_number_integer() && (of == 0 || of == 1);
  };
  if (!list->is_array() || list->size() < config->rotated.size() ||
      !std::all_of(list->begin(), list->end(), is_flag)) {
    top.Wrong("no_rope_layers", *list,
              absl::StrCat("1 or 0 for each of ", config->layers, " layers"));
    return;
  }
  for (size_t i = 0; i < config->rotated.size(); ++i) {
    config->rotated[i] = (*list)[i] == 1;
  }
}

// Reads the settings of a hybrid family, and refuses all but a dense decoder.
void ReadHybrid(JsonReader& top, ModelConfig* config) {
  constexpr int64_t kUsualExperts = 8;
  const int64_t experts =
      top.Int("num_local_experts", 0, std::numeric_limits<int64_t>::max())
          .value_or(kUsualExperts);
  if (experts > 0) {
    top.Fail("unsupported_architecture",
             absl::StrCat(experts, " experts beside a shared one; need 0"));
  }
  if (top.String("position_embedding_type").value_or("") != "rope") {
    config->rotated.assign(static_cast<size_t>(config->layers), false);
  }
}

// Reads the factors of a family that has them; each is 1 unless stated.
void ReadScales(JsonReader& top, ModelConfig* config) {
  const auto scale = [&](const char* key) {
    return static_cast<float>(top.Float(key).value_or(1));
  };
  config->embedding_scale = scale("embedding_multiplier");
  config->attention_scale = scale("attention_multiplier");
  config->residual_scale = scale("residual_multiplier");
  config->logit_scale = 1 / scale("logits_scaling");
}

// Reads which of its optional terms a layer has.
LayerTerms ReadTerms(JsonReader& top, const HfFamily& family,
                     const Family& traits) {
  const bool stated = family.biases == BiasRule::kStated &&
                      top.Bool("attention_bias").value_or(false);
  return {.qkv_bias = stated || family.biases == BiasRule::kQkv,
          .output_bias = stated,
          .ffn_bias = family.ffn_biases && top.Bool("mlp_bias").value_or(false),
          .head_norms = traits.norms_heads};
}

// Returns whether layer_types lists layers with a sliding window; absent: there
// is no such list. Layers that do not attend are refused.
std::optional<bool> ListsWindows(JsonReader& top, const HfFamily& family) {
  const json* types = top.Find("layer_types");
  if (types == nullptr && family.hybrid) types = top.Find("layers_block_type");
  if (types == nullptr) {
    if (family.hybrid) {
      top.Fail("unsupported_architecture",
               "layers without attention (no \"layer_types\")");
    }
    return std::nullopt;
  }
  if (!types->is_array()) {
    top.Wrong("layer_types", *types, "an array");
    return std::nullopt;
  }
  bool any = false;
  for (const json& layer : *types) {
    if (layer == "sliding_attention") {
      any = true;
    } else if (layer != "full_attention" && layer != "attention") {
      top.Fail("unsupported_architecture",
               absl::StrCat("layer type ", Quoted(WriteJson(layer))));
    }
  }
  return any;
}

// Returns the number of recent positions that some layer attends to; 0: all.
int64_t SlidingWindow(JsonReader& top, const HfFamily& family,
                      const ModelConfig& config) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::optional<bool> listed = ListsWindows(top, family);
  const int64_t usual = top.IsNull("sliding_window") ? 0 : family.window;
  const int64_t window = top.Int("sliding_window", 0, kMost).value_or(usual);
  const bool is_on = top.Bool("use_sliding_window").value_or(false);
  switch (family.window_rule) {
    case WindowRule::kNone:
      return 0;
    case WindowRule::kAll:
      return window;
    case WindowRule::kFlag:
      return is_on ? window : 0;
    case WindowRule::kFromLayer: {
      constexpr int64_t kUsualLayersWithout = 28;
      const int64_t without =
          top.Int("max_window_layers", 0, kMost).value_or(kUsualLayersWithout);
      return is_on && listed.value_or(without < config.layers) ? window : 0;
    }
    case WindowRule::kUnrotated: {
      const bool unrotated =
          std::count(config.rotated.begin(), config.rotated.end(), false) > 0;
      return listed.value_or(is_on && unrotated) ? window : 0;
    }
  }
  return 0;
}

// Returns the number of positions that the model was made for. Old files have
// other names for it; where there is none it is the default of transformers.
int64_t ReadContext(JsonReader& top, const HfFamily& family) {
  for (const char* key : {"max_position_embeddings", "max_sequence_length",
                          "max_seq_len", "max_seq_length", "seq_length",
                          "n_positions", "n_ctx", "model_max_length"}) {
    const std::optional<int64_t> length =
        top.Int(key, 1, ConfigLimits::kContext);
    if (length.has_value() || !top.status().ok()) return length.value_or(1);
  }
  return family.context;
}

// Reads eos_token_id of one file, an integer or a list of them, and warns of
// what is no token. The usual case of that is -1, for none.
void ReadEosIds(const json& object, const std::string& where,
                ModelConfig* config) {
  const auto value = object.find("eos_token_id");
  if (value == object.end() || value->is_null()) return;
  const json list = value->is_array() ? *value : json::array({*value});
  for (const json& id : list) {
    if (id.is_number_integer() && id >= 0 && id < config->vocab) {
      config->eos_ids.push_back(id.get<int32_t>());
      continue;
    }
    config->warnings.push_back(
        absl::StrCat("not used: ", where, ": \"eos_token_id\" is ",
                     Quoted(WriteJson(id)), "; need 0 to ", config->vocab - 1));
  }
}

// Reads the experts of qwen3_moe. What is absent is the default of
// transformers.
absl::Status ReadExperts(JsonReader& top, ModelConfig* config) {
  constexpr int64_t kMost = ConfigLimits::kExperts;
  ExpertsConfig& experts = config->experts;
  // Older names of one number.
  std::optional<int64_t> count = top.Int("num_local_experts", 0, kMost);
  if (!count.has_value()) count = top.Int("num_experts", 0, kMost);
  experts.count = static_cast<int>(count.value_or(128));
  if (experts.count == 0 || !top.status().ok()) return top.status();
  experts.used =
      static_cast<int>(top.Int("num_experts_per_tok", 1, kMost).value_or(8));
  experts.ffn = static_cast<int>(
      top.Int("moe_intermediate_size", 1, ConfigLimits::kFfn).value_or(768));
  experts.normed = top.Bool("norm_topk_prob").value_or(false);
  // Every `step`th layer has experts, unless the list says that it is dense.
  const int64_t step =
      top.Int("decoder_sparse_step", 1, ConfigLimits::kLayers).value_or(1);
  for (int layer = 0; layer < config->layers; ++layer) {
    experts.layers.push_back((layer + 1) % step == 0);
  }
  const json* const dense = top.Find("mlp_only_layers");
  if (dense == nullptr) return top.status();
  if (!dense->is_array()) top.Wrong("mlp_only_layers", *dense, "an array");
  for (const json& layer : dense->is_array() ? *dense : json::array()) {
    if (!layer.is_number_integer()) {
      top.Wrong("mlp_only_layers", layer, "numbers of layers in it");
      break;
    }
    // Other numbers name no layer: [-1] is written for none.
    if (layer >= 0 && layer < config->layers) {
      experts.layers[layer.get<size_t>()] = false;
    }
  }
  return top.status();
}

constexpr char kWholeWeights[] =
    "need F32, F16 or BF16 weights: take the checkpoint that this one was made "
    "from, or a GGUF file of the model";

void RefuseQuantised(JsonReader& top) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    const json* quantised = top.Find(key);
    if (quantised == nullptr) continue;
    const json method = quantised->is_object()
                            ? quantised->value("quant_method", json())
                            : json();
    top.Fail("unsupported_quantization",
             absl::StrCat(
                 "the weights are quantised",
                 method.is_string()
                     ? absl::StrCat(" by ", Quoted(method.get<std::string>()))
                     : "",
                 " (\"", key, "\"); ", kWholeWeights));
  }
}

// Refuses folders of GPTQ and AWQ, whose settings stood in a file of their own
// before they stood in config.json.
absl::Status RefuseQuantisedTensors(const Checkpoint& checkpoint) {
  absl::Status status;
  const auto check = [&](const std::string& name) {
    if (!absl::EndsWith(name, ".qweight")) return;
    status.Update(InputError(
        "unsupported_quantization",
        absl::StrCat(name, ": the weights are quantised by GPTQ or AWQ; ",
                     kWholeWeights)));
  };
  for (const TensorInfo& tensor : checkpoint.tensors()) check(tensor.name);
  for (const auto& [name, type] : checkpoint.unread()) check(name);
  return status;
}

// Compares the bytes of two tensors. Those that cannot be read differ: loading
// says why.
bool HaveSameBytes(const Checkpoint& checkpoint, const TensorInfo& a,
                   const TensorInfo& b) {
  constexpr uint64_t kBlock = uint64_t{1} << 20;
  if (a.type != b.type || a.shape != b.shape) return false;
  std::vector<std::byte> of_a(static_cast<size_t>(std::min(a.bytes, kBlock)));
  std::vector<std::byte> of_b(of_a.size());
  for (uint64_t at = 0; at < a.bytes; at += kBlock) {
    const auto count = static_cast<size_t>(std::min(kBlock, a.bytes - at));
    if (!checkpoint.Read(a, at, {of_a.data(), count}).ok() ||
        !checkpoint.Read(b, at, {of_b.data(), count}).ok() ||
        std::memcmp(of_a.data(), of_b.data(), count) != 0) {
      return false;
    }
  }
  return true;
}

// Returns true if the checkpoint has an output matrix that is not its
// embedding. It counts then, whatever the config says of tied ones, as in
// transformers.
bool HasOwnOutput(const Checkpoint& checkpoint) {
  constexpr char kEmbedding[] = "embed_tokens.weight";
  const TensorInfo* embedding = nullptr;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (absl::EndsWith(tensor.name, kEmbedding)) embedding = &tensor;
  }
  for (const char* name : kOutputs) {
    if (checkpoint.unread().count(name) > 0) return true;
    const TensorInfo* const output = checkpoint.Find(name);
    if (output == nullptr) continue;
    return embedding == nullptr ||
           !HaveSameBytes(checkpoint, *embedding, *output);
  }
  return false;
}

// Refuses settings that would change the arithmetic in ways that the decoder
// does not implement.
void RefuseUnsupported(JsonReader& top) {
  RefuseQuantised(top);
  const std::string activation = top.String("hidden_act").value_or("silu");
  if (activation != "silu" && activation != "swish") {
    top.Fail("unsupported_architecture",
             absl::StrCat("activation ", Quoted(activation), "; need silu"));
  }
}

// Returns the family of a config's model_type; null, with an error, if there is
// none.
const HfFamily* ReadFamily(JsonReader& top, const char* absent) {
  const std::string model_type = top.String("model_type").value_or(absent);
  const HfFamily* const family = FindHfFamily(model_type);
  if (family == nullptr) {
    top.Fail("unsupported_architecture",
             absl::StrCat("model_type ", Quoted(model_type), "; need ",
                          NamesOfHfFamilies()));
  }
  return family;
}

// `tied`: the embedding is the output matrix if the config does not say it.
absl::Status ReadConfig(JsonReader& top, const HfFamily& family, bool tied,
                        ModelConfig* config) {
  config->architecture = std::string(family.family);
  config->name = top.String("_name_or_path").value_or("");
  config->vocab = top.NeedInt("vocab_size", ConfigLimits::kVocab);
  config->context = ReadContext(top, family);
  config->hidden =
      static_cast<int>(top.NeedInt("hidden_size", ConfigLimits::kHidden));
  config->layers =
      static_cast<int>(top.NeedInt("num_hidden_layers", ConfigLimits::kLayers));
  config->heads = static_cast<int>(
      top.NeedInt("num_attention_heads", ConfigLimits::kHeads));
  // Null means as many as query heads.
  const bool usual = family.kv_heads > 0 &&
                     config->heads % family.kv_heads == 0 &&
                     !top.IsNull("num_key_value_heads");
  config->kv_heads =
      static_cast<int>(top.Int("num_key_value_heads", 1, ConfigLimits::kHeads)
                           .value_or(usual ? family.kv_heads : config->heads));
  const char* const ffn =
      family.hybrid ? "shared_intermediate_size" : "intermediate_size";
  config->ffn = static_cast<int>(
      family.ffn > 0 ? top.Int(ffn, 1, ConfigLimits::kFfn).value_or(family.ffn)
                     : top.NeedInt(ffn, ConfigLimits::kFfn));
  config->norm_eps =
      static_cast<float>(top.Float("rms_norm_eps").value_or(family.norm_eps));
  config->tied_embeddings = top.Bool("tie_word_embeddings").value_or(tied);
  std::optional<int64_t> head_dim =
      top.Int("head_dim", 1, ConfigLimits::kHeadDim);
  if (!head_dim && family.head_dim > 0 && !top.IsNull("head_dim")) {
    head_dim = family.head_dim;
  }
  if (!top.status().ok()) return top.status();
  const int derived = config->hidden / config->heads;
  if (!head_dim.has_value() && (config->hidden % config->heads != 0 ||
                                derived > ConfigLimits::kHeadDim)) {
    top.Fail(
        "invalid_metadata",
        absl::StrCat("hidden_size ", config->hidden, " with ", config->heads,
                     " heads; need a multiple of them, at most ",
                     ConfigLimits::kHeadDim, " each"));
    return top.status();
  }
  config->head_dim = static_cast<int>(head_dim.value_or(derived));
  const Family& traits = *FindFamily(family.family);
  RETURN_IF_ERROR(ReadRope(top, family, traits, config));
  ReadRotated(top, traits.unrotated_interval, config);
  if (family.hybrid) ReadHybrid(top, config);
  if (traits.scales) ReadScales(top, config);
  if (traits.experts) RETURN_IF_ERROR(ReadExperts(top, config));
  config->terms = ReadTerms(top, family, traits);
  config->sliding_window = SlidingWindow(top, family, *config);
  RefuseUnsupported(top);
  return top.status();
}

// Reads the text_config of a model that also sees. What is tied is seen by the
// tensors, since files and versions differ in where they say it.
absl::Status ReadNested(JsonReader& top, const Checkpoint& checkpoint,
                        ModelConfig* config) {
  const json* const object = top.Find(kTextConfig);
  if (object == nullptr || !object->is_object()) {
    top.Fail("invalid_metadata",
             absl::StrCat("\"", kTextConfig, "\" is missing, or no object"));
  }
  RefuseQuantised(top);
  RETURN_IF_ERROR(top.status());
  JsonReader text(*object, absl::StrCat(kConfigFile, ": ", kTextConfig));
  const HfFamily* const family = ReadFamily(text, /*absent=*/"mistral");
  if (family == nullptr) return text.status();
  if (family->nested) {
    text.Fail("unsupported_architecture", "a model within another's");
    return text.status();
  }
  const bool has_output =
      std::any_of(std::begin(kOutputs), std::end(kOutputs),
                  [&](const char* name) { return checkpoint.Find(name); });
  return ReadConfig(text, *family, /*tied=*/!has_output, config);
}

}  // namespace

absl::StatusOr<ModelConfig> ReadHfConfig(const Checkpoint& checkpoint) {
  RETURN_IF_ERROR(RefuseQuantisedTensors(checkpoint));
  const json& files = checkpoint.side_files();
  const auto file = files.find(kConfigFile);
  if (file == files.end() || !file->is_object()) {
    return InputError("invalid_metadata", "config.json is no JSON object");
  }
  JsonReader top(*file, kConfigFile);
  ModelConfig config;
  const HfFamily* const family = ReadFamily(top, /*absent=*/"");
  if (family == nullptr) return top.status();
  if (family->nested) {
    RETURN_IF_ERROR(ReadNested(top, checkpoint, &config));
  } else {
    RETURN_IF_ERROR(ReadConfig(top, *family, family->tied_embeddings, &config));
  }
  if (config.tied_embeddings && HasOwnOutput(checkpoint)) {
    config.tied_embeddings = false;
  }

  const auto generation = files.find(kGenerationFile);
  if (generation != files.end() && generation->is_object()) {
    ReadEosIds(*generation, kGenerationFile, &config);
  }
  if (config.eos_ids.empty()) ReadEosIds(*file, kConfigFile, &config);
  if (config.eos_ids.empty() && family->nested) {
    ReadEosIds((*file)[kTextConfig],
               absl::StrCat(kConfigFile, ": ", kTextConfig), &config);
  }
  return config;
}

}  // namespace tiercel
