#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "lib/text/quote.h"
#include "models/decoder/config_readers.h"
#include "models/decoder/families.h"

namespace tiercel {
namespace {

// Reads a count that files give once or, in newer ones, per layer. All layers
// must have the same.
absl::StatusOr<std::optional<int64_t>> FindPerLayer(const Metadata& metadata,
                                                    const std::string& key,
                                                    int64_t layers,
                                                    int64_t most) {
  const auto it = metadata.all().find(key);
  const bool is_array =
      it != metadata.all().end() &&
      (std::holds_alternative<std::vector<int64_t>>(it->second) ||
       std::holds_alternative<std::vector<uint64_t>>(it->second));
  if (!is_array) return metadata.FindInt(key, 1, most);
  ASSIGN_OR_RETURN(const std::optional<std::vector<int64_t>> all,
                   metadata.FindInts(key));
  const std::vector<int64_t> values = all.value_or(std::vector<int64_t>());
  if (static_cast<int64_t>(values.size()) != layers) {
    return InputError(
        "invalid_metadata",
        absl::StrCat(Quoted(key), " has ", values.size(),
                     " elements; need one for each of ", layers, " layers"));
  }
  if (std::any_of(values.begin(), values.end(),
                  [&](int64_t value) { return value != values.front(); })) {
    return InputError("unsupported_architecture",
                      absl::StrCat(Quoted(key), " differs between layers"));
  }
  if (values.front() < 1 || values.front() > most) {
    return InputError("invalid_metadata",
                      absl::StrCat(Quoted(key), " holds ", values.front(),
                                   "; need 1 to ", most));
  }
  return std::optional<int64_t>(values.front());
}

// Reads the keys of one architecture, "llama.block_count" and so on. The first
// failure stays; values read after it are meaningless.
class MetadataReader {
 public:
  MetadataReader(const Metadata& metadata, std::string architecture)
      : metadata_(metadata), architecture_(std::move(architecture)) {}

  const absl::Status& status() const { return status_; }

  std::string Key(std::string_view key) const {
    return absl::StrCat(architecture_, ".", std::string(key));
  }
  bool Has(std::string_view key) const { return metadata_.Has(Key(key)); }

  int64_t Int(std::string_view key, int64_t most) {
    return Keep(metadata_.GetInt(Key(key), 1, most));
  }
  int64_t Int(std::string_view key, int64_t least, int64_t most,
              int64_t absent) {
    return Keep(metadata_.FindInt(Key(key), least, most)).value_or(absent);
  }
  std::optional<int64_t> PerLayer(std::string_view key, int64_t layers,
                                  int64_t most) {
    if (!status_.ok()) return std::nullopt;  // `layers` may be invalid
    return Keep(FindPerLayer(metadata_, Key(key), layers, most));
  }
  std::optional<double> Float(std::string_view key) {
    return Keep(metadata_.FindFloat(Key(key)));
  }
  std::optional<bool> Bool(std::string_view key) {
    return Keep(metadata_.FindBool(Key(key)));
  }
  std::string String(std::string_view key, std::string absent) {
    return Keep(metadata_.FindString(Key(key))).value_or(std::move(absent));
  }
  void Fail(std::string_view code, const std::string& message) {
    if (status_.ok()) status_ = InputError(code, message);
  }

 private:
  template <typename T>
  T Keep(absl::StatusOr<T> value) {
    if (value.ok()) return *std::move(value);
    if (status_.ok()) status_ = value.status();
    return T();
  }

  const Metadata& metadata_;
  const std::string architecture_;
  absl::Status status_;
};

RopeScaling ReadYarn(MetadataReader& in, RopeScaling scaling) {
  scaling.beta_fast =
      in.Float("rope.scaling.yarn_beta_fast").value_or(scaling.beta_fast);
  scaling.beta_slow =
      in.Float("rope.scaling.yarn_beta_slow").value_or(scaling.beta_slow);
  // Converters store config.json's attention_factor here; a negative one is
  // unset. Others store its mscale_all_dim, beside an mscale of 1.
  const double attention =
      in.Float("rope.scaling.yarn_attn_factor").value_or(-1);
  const double mscale_all =
      in.Float("rope.scaling.yarn_log_multiplier").value_or(0);
  if (!(attention < 0)) {
    scaling.attention_factor = attention;
  } else if (mscale_all != 0) {
    scaling.attention_factor = YarnMagnitude(scaling.factor, 1) /
                               YarnMagnitude(scaling.factor, mscale_all);
  }
  const double extrapolation =
      in.Float("rope.scaling.yarn_ext_factor").value_or(1);
  if (!(extrapolation < 0) && extrapolation != 1) {
    in.Fail("unsupported_rope_scaling",
            absl::StrCat("yarn with extrapolation factor ", extrapolation,
                         "; need 1"));
  }
  return scaling;
}

// `has_factors`: there are tensors of longrope's factors, beside which older
// converters name no type.
RopeScaling ReadRopeScaling(MetadataReader& in, int64_t context,
                            bool has_factors) {
  RopeScaling scaling;
  const std::optional<double> factor = in.Float("rope.scaling.factor");
  const std::string type = in.String("rope.scaling.type", "");
  scaling.original_context = in.Int("rope.scaling.original_context_length", 1,
                                    ConfigLimits::kContext, context);
  const double attention = in.Float("rope.scaling.attn_factor").value_or(1);
  if (type == "longrope" || (type.empty() && has_factors)) {
    scaling.type = RopeScaling::Type::kLongRope;
    scaling.attention_factor = attention;
    return scaling;
  }
  if (attention != 1) {
    in.Fail("unsupported_rope_scaling",
            absl::StrCat("rotary attention factor ", attention, "; need 1"));
  }
  if (type.empty()) {
    // Files of 2023 have only a linear factor, under the newer or the older
    // key.
    const double linear =
        factor.value_or(in.Float("rope.scale_linear").value_or(1));
    if (linear == 1 || linear == 0) return scaling;
    scaling.type = RopeScaling::Type::kLinear;
    scaling.factor = linear;
  } else if (type == "linear" || type == "yarn") {
    scaling.type = type == "linear" ? RopeScaling::Type::kLinear
                                    : RopeScaling::Type::kYarn;
    if (!factor.has_value()) {
      in.Fail(
          "invalid_metadata",
          absl::StrCat(Quoted(in.Key("rope.scaling.factor")), " is missing"));
    }
    scaling.factor = factor.value_or(1);
    if (type == "yarn") scaling = ReadYarn(in, scaling);
  } else if (type != "none") {
    in.Fail("unsupported_rope_scaling",
            absl::StrCat("rotary scaling ", Quoted(type),
                         "; need none, linear, yarn or longrope"));
  }
  return scaling;
}

// Reads the factors of a family that has them, where zero is none, and whether
// its layers have RoPE.
void ReadScales(MetadataReader& in, ModelConfig* config) {
  const auto scale = [&](const char* key) -> std::optional<float> {
    const double value = in.Float(key).value_or(0);
    if (value == 0) return std::nullopt;
    return static_cast<float>(value);
  };
  config->embedding_scale = scale("embedding_scale").value_or(1);
  config->attention_scale = scale("attention.scale");
  config->residual_scale = scale("residual_scale").value_or(1);
  config->logit_scale = 1 / scale("logit_scale").value_or(1);
  if (!in.Bool("rope.scaling.finetuned").value_or(true)) {
    config->rotated.assign(static_cast<size_t>(config->layers), false);
  }
}

// Reads the experts of an architecture whose layers all have them. Their shares
// are normed where no key says otherwise, as files of it say nothing.
ExpertsConfig ReadExperts(MetadataReader& in, const ModelConfig& config) {
  ExpertsConfig experts;
  experts.count =
      static_cast<int>(in.Int("expert_count", ConfigLimits::kExperts));
  experts.used =
      static_cast<int>(in.Int("expert_used_count", ConfigLimits::kExperts));
  const std::optional<int64_t> ffn = in.PerLayer(
      "expert_feed_forward_length", config.layers, ConfigLimits::kFfn);
  // Files without the key divide the feed-forward among the experts of a row.
  experts.ffn =
      static_cast<int>(ffn.value_or(config.ffn / std::max(experts.used, 1)));
  if (experts.ffn < 1) {
    in.Fail("invalid_metadata",
            absl::StrCat("experts of ", experts.ffn, " ffn columns; need 1 to ",
                         ConfigLimits::kFfn));
  }
  experts.normed = in.Bool("expert_weights_norm").value_or(true);
  // These would change the arithmetic.
  const double scale = in.Float("expert_weights_scale").value_or(0);
  if (scale != 0 && scale != 1) {
    in.Fail("unsupported_architecture",
            absl::StrCat("shares of experts scaled by ", scale));
  }
  constexpr int64_t kSoftmax = 1;
  if (in.Int("expert_gating_func", 0, INT64_MAX, kSoftmax) > kSoftmax) {
    in.Fail("unsupported_architecture",
            "experts are not chosen by a softmax over all");
  }
  if (in.Int("expert_shared_count", 0, INT64_MAX, 0) > 0 ||
      in.Int("expert_group_count", 0, INT64_MAX, 0) > 1) {
    in.Fail("unsupported_architecture", "experts that rows share, or groups");
  }
  experts.layers.assign(static_cast<size_t>(std::max(config.layers, 0)), true);
  return experts;
}

// Returns the number of rows of the embedding or, if a file holds only a
// vocabulary, of its tokens. There may be rows without a token, and unused
// tokens without a row.
absl::StatusOr<int64_t> ReadVocab(const Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const std::vector<std::string>* tokens,
                   checkpoint.metadata().FindStrings("tokenizer.ggml.tokens"));
  const TensorInfo* embedding = checkpoint.Find("token_embd.weight");
  if (embedding == nullptr && tokens == nullptr) {
    return InputError("invalid_vocab",
                      "neither token_embd.weight nor tokenizer.ggml.tokens");
  }
  const int64_t count =
      tokens == nullptr ? 0 : static_cast<int64_t>(tokens->size());
  const int64_t vocab = embedding == nullptr || embedding->shape.empty()
                            ? count
                            : embedding->shape[0];
  if (vocab < 1 || vocab > ConfigLimits::kVocab) {
    return InputError("invalid_vocab",
                      absl::StrCat("a vocabulary of ", vocab, "; need 1 to ",
                                   ConfigLimits::kVocab));
  }
  return vocab;
}

// Reads the ids that end a text, and warns of those that are no tokens; of the
// one that begins it too, which is the tokenizer's.
void ReadEosIds(const Metadata& metadata, ModelConfig* config) {
  for (const std::string_view kind : {"bos", "eos", "eot", "eom"}) {
    const std::string key =
        absl::StrCat("tokenizer.ggml.", std::string(kind), "_token_id");
    const absl::StatusOr<std::optional<int64_t>> id =
        metadata.FindInt(key, 0, config->vocab - 1);
    if (!id.ok()) {
      config->warnings.push_back(
          absl::StrCat("not used: ", id.status().message()));
    } else if (id->has_value() && kind != "bos") {
      config->eos_ids.push_back(static_cast<int32_t>(**id));
    }
  }
}

}  // namespace

absl::StatusOr<ModelConfig> ReadGgufConfig(const Checkpoint& checkpoint) {
  const Metadata& metadata = checkpoint.metadata();
  const auto architecture = metadata.FindString("general.architecture");
  if (!architecture.ok() || !architecture->has_value()) {
    return InputError("unsupported_architecture",
                      "\"general.architecture\" is missing or no string");
  }
  const Family* const family = FindFamily(**architecture);
  if (family == nullptr) {
    return InputError("unsupported_architecture",
                      absl::StrCat("architecture ", Quoted(**architecture),
                                   "; need ", NamesOfFamilies()));
  }
  ASSIGN_OR_RETURN(const int64_t vocab, ReadVocab(checkpoint));

  MetadataReader in(metadata, **architecture);
  ModelConfig config;
  config.architecture = **architecture;
  if (const auto name = metadata.FindString("general.name"); name.ok()) {
    config.name = name->value_or("");
  }
  config.vocab = vocab;
  config.context = in.Int("context_length", ConfigLimits::kContext);
  config.hidden =
      static_cast<int>(in.Int("embedding_length", ConfigLimits::kHidden));
  config.layers =
      static_cast<int>(in.Int("block_count", ConfigLimits::kLayers));
  const std::optional<int64_t> heads =
      in.PerLayer("attention.head_count", config.layers, ConfigLimits::kHeads);
  const std::optional<int64_t> kv_heads = in.PerLayer(
      "attention.head_count_kv", config.layers, ConfigLimits::kHeads);
  const std::optional<int64_t> ffn =
      in.PerLayer("feed_forward_length", config.layers, ConfigLimits::kFfn);
  const std::optional<double> eps =
      in.Float("attention.layer_norm_rms_epsilon");
  if (!in.status().ok()) return in.status();
  for (const auto& [key, is_there] :
       {std::pair("attention.head_count", heads.has_value()),
        std::pair("feed_forward_length", ffn.has_value()),
        std::pair("attention.layer_norm_rms_epsilon", eps.has_value())}) {
    if (is_there) continue;
    return InputError("invalid_metadata",
                      absl::StrCat(Quoted(in.Key(key)), " is missing"));
  }
  config.heads = static_cast<int>(*heads);
  config.kv_heads = static_cast<int>(kv_heads.value_or(*heads));
  config.ffn = static_cast<int>(*ffn);
  config.norm_eps = static_cast<float>(*eps);
  if (!in.Has("attention.key_length") && config.hidden % config.heads != 0) {
    return InputError(
        "invalid_metadata",
        absl::StrCat("embedding length ", config.hidden, " with ", config.heads,
                     " heads; need a multiple of them"));
  }
  config.head_dim =
      static_cast<int>(in.Int("attention.key_length", 2, ConfigLimits::kHeadDim,
                              config.hidden / config.heads));
  const int64_t value_dim = in.Int("attention.value_length", 1,
                                   ConfigLimits::kHeadDim, config.head_dim);
  if (value_dim != config.head_dim) {
    in.Fail("unsupported_architecture",
            absl::StrCat("keys of ", config.head_dim, " and values of ",
                         value_dim, " elements; need the same"));
  }
  if (config.head_dim > ConfigLimits::kHeadDim) {
    in.Fail("invalid_metadata",
            absl::StrCat("heads of ", config.head_dim,
                         " elements; need at most ", ConfigLimits::kHeadDim));
  }
  config.rope_dims = static_cast<int>(in.Int(
      "rope.dimension_count", 2, ConfigLimits::kHeadDim, config.head_dim));
  config.rope_theta = in.Float("rope.freq_base").value_or(10000);
  config.rope_scaling =
      ReadRopeScaling(in, config.context,
                      checkpoint.Find("rope_factors_long.weight") != nullptr);
  // The files have no key for it.
  config.rotated = RotatedLayers(config.layers, family->unrotated_interval);
  if (family->scales) ReadScales(in, &config);
  if (family->grows_queries) {
    config.query_growth = in.Float("attention.temperature_scale").value_or(0);
    config.query_step = config.rope_scaling.original_context;
  }
  if (family->experts) {
    config.experts = ReadExperts(in, config);
  } else if (in.Int("expert_count", 0, INT64_MAX, 0) > 0) {
    in.Fail("unsupported_architecture",
            absl::StrCat("a mixture of experts of ", config.architecture));
  }
  config.sliding_window = in.Int("attention.sliding_window", 0, INT64_MAX, 0);
  if (!in.status().ok()) return in.status();
  config.tied_embeddings = checkpoint.Find("output.weight") == nullptr;
  ReadEosIds(metadata, &config);
  return config;
}

}  // namespace tiercel
