#include "models/decoder/config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "models/decoder/config_readers.h"

namespace tiercel {
namespace {

absl::Status Invalid(const char* what, double got, const char* needed) {
  return InputError("invalid_metadata",
                    absl::StrCat(what, " is ", got, "; need ", needed));
}

absl::Status CheckHeads(const ModelConfig& c) {
  if (c.heads % c.kv_heads != 0) {
    return InputError(
        "invalid_metadata",
        absl::StrCat(c.heads, " attention heads with ", c.kv_heads,
                     " KV heads; need a multiple of them"));
  }
  if (c.head_dim % 2 != 0) {
    return Invalid("the head dimension", c.head_dim, "an even number");
  }
  if (c.rope_dims % 2 != 0 || c.rope_dims > c.head_dim) {
    return InputError("invalid_metadata",
                      absl::StrCat(c.rope_dims, " rotated dimensions of ",
                                   c.head_dim, "; need an even part of them"));
  }
  return absl::OkStatus();
}

// Comparisons are written so that a NaN fails them.
absl::Status CheckFloats(const ModelConfig& c) {
  if (!(c.norm_eps > 0 && c.norm_eps < 1)) {
    return Invalid("the norm's epsilon", c.norm_eps, "above 0 and below 1");
  }
  if (!(c.rope_theta > 1 && c.rope_theta <= 1e15)) {
    return Invalid("the rotary base", c.rope_theta, "above 1, at most 1e15");
  }
  constexpr float kMostScale = 1e6f;
  const struct {
    const char* name;
    float value;
  } scales[] = {
      {"the factor on embeddings", c.embedding_scale},
      {"the factor on attention's scores", c.attention_scale.value_or(1)},
      {"the factor on what blocks add", c.residual_scale},
      {"the factor on logits", c.logit_scale}};
  for (const auto& scale : scales) {
    if (!(scale.value >= 1 / kMostScale && scale.value <= kMostScale)) {
      return Invalid(scale.name, scale.value, "1e-6 to 1e6");
    }
  }
  if (!(c.query_growth >= 0 && c.query_growth <= 1e3)) {
    return Invalid("the growth of queries", c.query_growth, "0 to 1000");
  }
  const RopeScaling& rope = c.rope_scaling;
  if (rope.type == RopeScaling::Type::kNone) return absl::OkStatus();
  if (!(rope.factor > 0 && rope.factor <= ConfigLimits::kRopeFactor)) {
    return Invalid("the rotary scaling factor", rope.factor,
                   "above 0, at most 1e6");
  }
  if (rope.type == RopeScaling::Type::kLinear) return absl::OkStatus();
  if (rope.original_context < 1 ||
      rope.original_context > ConfigLimits::kContext) {
    return Invalid("the original context length",
                   static_cast<double>(rope.original_context),
                   "1 to 1073741824");
  }
  if (rope.type == RopeScaling::Type::kDynamic) return absl::OkStatus();
  if (rope.type == RopeScaling::Type::kLlama3) {
    if (!(rope.low_freq_factor > 0 && rope.low_freq_factor <= 1e6)) {
      return Invalid("low_freq_factor", rope.low_freq_factor,
                     "above 0, at most 1e6");
    }
    if (!(rope.high_freq_factor > rope.low_freq_factor &&
          rope.high_freq_factor <= 1e6)) {
      return Invalid("high_freq_factor", rope.high_freq_factor,
                     "above low_freq_factor, at most 1e6");
    }
    return absl::OkStatus();
  }
  const double attention = rope.attention_factor.value_or(1);
  if (!(attention > 0 && attention <= 1e3)) {
    return Invalid("the rotary attention factor", attention,
                   "above 0, at most 1000");
  }
  if (rope.type == RopeScaling::Type::kLongRope) return absl::OkStatus();
  if (!(rope.beta_slow > 0 && rope.beta_slow <= 1e6)) {
    return Invalid("yarn's beta_slow", rope.beta_slow, "above 0, at most 1e6");
  }
  if (!(rope.beta_fast >= rope.beta_slow && rope.beta_fast <= 1e6)) {
    return Invalid("yarn's beta_fast", rope.beta_fast,
                   "at least beta_slow, at most 1e6");
  }
  return absl::OkStatus();
}

absl::Status CheckExperts(const ExpertsConfig& experts) {
  if (experts.used <= experts.count) return absl::OkStatus();
  return InputError(
      "invalid_metadata",
      absl::StrCat("each row uses ", experts.used, " of ", experts.count,
                   " experts (\"num_experts_per_tok\" of "
                   "config.json, \"expert_used_count\" of GGUF)"
                   "; need at most all"));
}

}  // namespace

std::vector<bool> RotatedLayers(int layers, int64_t unrotated_interval) {
  std::vector<bool> rotated;
  for (int layer = 1; unrotated_interval > 0 && layer <= layers; ++layer) {
    rotated.push_back(layer % unrotated_interval != 0);
  }
  return rotated;
}

int64_t ModelConfig::RopeLength(int64_t end) const {
  const int64_t original = rope_scaling.original_context;
  if (end <= original) return 0;
  switch (rope_scaling.type) {
    case RopeScaling::Type::kLongRope:
      return original + 1;
    case RopeScaling::Type::kDynamic:
      return end;
    default:
      return 0;
  }
}

float ModelConfig::QueryScale(int64_t position) const {
  const auto steps = static_cast<double>(position / query_step);
  return static_cast<float>(1 + query_growth * std::log1p(steps));
}

int64_t ModelConfig::NextQueryScale(int64_t position) const {
  if (query_growth == 0) return std::numeric_limits<int64_t>::max();
  return (position / query_step + 1) * query_step;
}

absl::StatusOr<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint) {
  absl::StatusOr<ModelConfig> config =
      checkpoint.format() == Checkpoint::Format::kGguf
          ? ReadGgufConfig(checkpoint)
          : ReadHfConfig(checkpoint);
  absl::Status status = config.status();
  if (status.ok()) status = CheckHeads(*config);
  if (status.ok()) status = CheckFloats(*config);
  if (status.ok()) status = CheckExperts(config->experts);
  if (!status.ok()) return Annotate(status, checkpoint.path());
  constexpr int kAlign = ModelConfig::kHeadAlign;
  if (config->head_dim % kAlign != 0) {
    config->head_elements = config->head_dim;
    config->head_dim = (config->head_dim + kAlign - 1) / kAlign * kAlign;
  }
  const RopeScaling& rope = config->rope_scaling;
  if (rope.type == RopeScaling::Type::kYarn ||
      rope.type == RopeScaling::Type::kDynamic) {
    const double stretched =
        static_cast<double>(rope.original_context) * rope.factor;
    config->context =
        std::max(config->context, static_cast<int64_t>(std::min<double>(
                                      stretched, ConfigLimits::kContext)));
  }
  std::sort(config->eos_ids.begin(), config->eos_ids.end());
  config->eos_ids.erase(
      std::unique(config->eos_ids.begin(), config->eos_ids.end()),
      config->eos_ids.end());
  return config;
}

}  // namespace tiercel
