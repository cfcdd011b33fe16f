// The formulas are those of the papers named in config.h, as in transformers'
// modeling_rope_utils.py, in double.

#include <algorithm>
#include <cmath>

#include "models/decoder/config.h"
#include "models/decoder/config_readers.h"

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
  rope->attention_factor =
      scaling.attention_factor.value_or(YarnMagnitude(scaling.factor, 1));
}

// The base that stretches the lowest frequency to a length beyond the original
// (NTK-aware scaling).
double DynamicBase(const ModelConfig& config, int64_t length) {
  const RopeScaling& scaling = config.rope_scaling;
  const double stretch = scaling.factor * static_cast<double>(length) /
                             static_cast<double>(scaling.original_context) -
                         (scaling.factor - 1);
  const double dims = config.rope_dims;
  return config.rope_theta * std::pow(stretch, dims / (dims - 2));
}

void Divide(const std::vector<double>& factors, RopeFrequencies* rope) {
  const size_t count = std::min(factors.size(), rope->inv_freq.size());
  for (size_t i = 0; i < count; ++i) rope->inv_freq[i] /= factors[i];
}

}  // namespace

double YarnMagnitude(double factor, double multiplier) {
  return factor <= 1 ? 1 : 0.1 * multiplier * std::log(factor) + 1;
}

RopeFrequencies MakeRopeFrequencies(const ModelConfig& config,
                                    const RopeFactors& factors,
                                    int64_t length) {
  const bool is_longer = length > config.rope_scaling.original_context;
  const double base =
      config.rope_scaling.type == RopeScaling::Type::kDynamic && is_longer
          ? DynamicBase(config, length)
          : config.rope_theta;
  RopeFrequencies rope;
  rope.inv_freq.resize(config.rope_dims / 2);
  for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
    rope.inv_freq[i] =
        std::pow(base, -2.0 * static_cast<double>(i) / config.rope_dims);
  }
  switch (config.rope_scaling.type) {
    case RopeScaling::Type::kNone:
    case RopeScaling::Type::kDynamic:
      break;
    case RopeScaling::Type::kLinear:
      for (double& inv_freq : rope.inv_freq) {
        inv_freq /= config.rope_scaling.factor;
      }
      break;
    case RopeScaling::Type::kLlama3:
      if (!factors.all.empty()) break;
      for (double& inv_freq : rope.inv_freq) {
        inv_freq = Llama3(inv_freq, config.rope_scaling);
      }
      break;
    case RopeScaling::Type::kYarn:
      Yarn(config, &rope);
      break;
    case RopeScaling::Type::kLongRope:
      Divide(is_longer ? factors.of_long : factors.of_short, &rope);
      rope.attention_factor = config.rope_scaling.attention_factor.value_or(1);
      break;
  }
  Divide(factors.all, &rope);
  return rope;
}

}  // namespace tiercel
