// The formulas are those of the papers named in config.h, as in transformers'
// modeling_rope_utils.py, in double.

#include <algorithm>
#include <cmath>

#include "models/decoder/config.h"

namespace tiercel {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

// Long waves are slowed by `factor`, short ones kept, and the others blended.
double Llama3(double inv_freq, const RopeScaling& scaling) {
  const auto context = static_cast<double>(scaling.original_context);
  const double wavelength = kTwoPi / inv_freq;
  if (wavelength > context / scaling.low_freq_factor) {
    return inv_freq / scaling.factor;
  }
  if (wavelength < context / scaling.high_freq_factor) return inv_freq;
  const double keep = (context / wavelength - scaling.low_freq_factor) /
                      (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - keep) * inv_freq / scaling.factor + keep * inv_freq;
}

// The pair of dimensions that turns `rotations` times over the original
// context.
double YarnDimension(double rotations, const ModelConfig& config) {
  const auto context =
      static_cast<double>(config.rope_scaling.original_context);
  return config.rope_dims * std::log(context / (rotations * kTwoPi)) /
         (2 * std::log(config.rope_theta));
}

void Yarn(const ModelConfig& config, RopeFrequencies* rope) {
  const RopeScaling& scaling = config.rope_scaling;
  double low = YarnDimension(scaling.beta_fast, config);
  double high = YarnDimension(scaling.beta_slow, config);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, config.rope_dims - 1.0);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < rope->inv_freq.size(); ++i) {
    const double slow =
        std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double inv_freq = rope->inv_freq[i];
    rope->inv_freq[i] =
        inv_freq / scaling.factor * slow + inv_freq * (1 - slow);
  }
  const double usual =
      scaling.factor <= 1 ? 1 : 0.1 * std::log(scaling.factor) + 1;
  rope->attention_factor = scaling.attention_factor.value_or(usual);
}

}  // namespace

RopeFrequencies MakeRopeFrequencies(const ModelConfig& config,
                                    const std::vector<float>& factors) {
  RopeFrequencies rope;
  rope.inv_freq.resize(config.rope_dims / 2);
  for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
    rope.inv_freq[i] = std::pow(
        config.rope_theta, -2.0 * static_cast<double>(i) / config.rope_dims);
  }
  switch (config.rope_scaling.type) {
    case RopeScaling::Type::kNone:
      break;
    case RopeScaling::Type::kLinear:
      for (double& inv_freq : rope.inv_freq) {
        inv_freq /= config.rope_scaling.factor;
      }
      break;
    case RopeScaling::Type::kLlama3:
      if (!factors.empty()) break;
      for (double& inv_freq : rope.inv_freq) {
        inv_freq = Llama3(inv_freq, config.rope_scaling);
      }
      break;
    case RopeScaling::Type::kYarn:
      Yarn(config, &rope);
      break;
  }
  const size_t scaled = std::min(factors.size(), rope.inv_freq.size());
  for (size_t i = 0; i < scaled; ++i) rope.inv_freq[i] /= factors[i];
  return rope;
}

}  // namespace tiercel
