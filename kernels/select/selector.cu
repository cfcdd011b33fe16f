// Bytes: the importance of a head once a pass, from the second-level cache.
// Operations: a handful a position and pass.
// Bound by: the launches and barriers, as one block has a head.

#include <cmath>

#include "kernels/device/block_sums.h"
#include "kernels/device/device_lang.h"
#include "kernels/number/half.h"
#include "kernels/number/reference_math.h"
#include "kernels/select/block_top_k.h"
#include "kernels/select/selector.h"
#include "kernels/select/selector_body.h"

namespace tiercel {
namespace {

constexpr int kThreads = 256;

TIERCEL_DEVICE float Greater(float a, float b) { return a < b ? b : a; }

// A block mixes importance and prior of the candidates of one KV head, and
// leaves the logarithms of the mixture. Sums over candidates are in the order
// of the contract: over each 256 by 16 chains and a tree, then in double.
struct MixHeads {
  static constexpr int kMaxThreads = kThreads;
  static constexpr int kChains = 16;
  static constexpr int kSums = kThreads / kChains;  // sums at a time

  struct Shared {
    Array<float, kSums> sums;
    Array<float, kWarpLanes> of_warps;
    double total;
  };
  SelectParams p;
  int64_t stride;
  float* shares;  // [kv_heads, stride], f; become the logarithms
  float* priors;  // [kv_heads, stride]

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& s) const {
    const int64_t n = p.candidates;
    const float* importance =
        p.importance.raw() + t.block * p.importance_stride;
    const uint16_t* norms = p.norms.raw() + t.block * p.norms_stride;
    float* f = shares + t.block * stride;
    float* r = priors + t.block * stride;

    // 1. importance^2 and prior, not yet divided by their sums
    float max = 0.0f;
    for (int64_t j = t.index; j < n; j += t.count) {
      max = Greater(max, ImportanceOf(importance[j]));
    }
    max = MaxOfBlock(t, max, s.of_warps);
    for (int64_t j = t.index; j < n; j += t.count) {
      const float root =
          ImportanceOf(importance[j]) / (max > 0.0f ? max : 1.0f);
      f[j] = root * root;
      r[j] = PriorOf(norms[j], j);
    }
    const double f_sum =
        SumOf(t, s, [&](float sum, int64_t j) { return sum + f[j]; });
    const double r_sum =
        SumOf(t, s, [&](float sum, int64_t j) { return sum + r[j]; });

    // 2. their shares f and r, and lambda, the weight of r in the mixture
    const float f_unit = f_sum > 0.0 ? static_cast<float>(f_sum) : 1.0f;
    const auto r_unit = static_cast<float>(r_sum);
    for (int64_t j = t.index; j < n; j += t.count) {
      f[j] /= f_unit;
      r[j] /= r_unit;
    }
    const double toward = SumOf(t, s, [&](float sum, int64_t j) {
      return std::fma(f[j], f[j] - r[j], sum);
    });
    const double distance = SumOf(t, s, [&](float sum, int64_t j) {
      return std::fma(f[j] - r[j], f[j] - r[j], sum);
    });
    auto lambda = static_cast<float>(
        toward / (distance > kLeastDistance ? distance : kLeastDistance));
    lambda = lambda > 0.0f ? lambda : 0.0f;
    lambda = lambda < p.most_prior ? lambda : p.most_prior;

    // 3. the mixture
    for (int64_t j = t.index; j < n; j += t.count) {
      const float mixture = std::fma(lambda, r[j], (1.0f - lambda) * f[j]);
      f[j] = LogLane(Greater(mixture, kLeastMixture));
    }
  }

  static TIERCEL_DEVICE float ImportanceOf(float x) {
    return std::isfinite(x) && x > 0.0f ? x : 0.0f;
  }

  TIERCEL_DEVICE float PriorOf(uint16_t half, int64_t j) const {
    const float norm = F32FromF16(half);
    const float length = norm < kLeastNorm      ? kLeastNorm
                         : norm < kGreatestNorm ? norm
                                                : kGreatestNorm;
    const auto last =
        static_cast<float>(p.candidates > 1 ? p.candidates - 1 : 1);
    const float age = static_cast<float>(j) / last;
    const float left = (last - static_cast<float>(j)) / last;
    const float slope = ExpLane(kAgePower * LogLane(Greater(age, kLeastShare)));
    const float edge = LogLane(Greater(left, kLeastShare));
    const float of_age =
        std::fma(kEdgeWeight, edge, slope * -kAgeSlope) * kAgeWeight;
    return ExpLane(std::fma(kNormPower, LogLane(length), of_age));
  }

  // Sums over all candidates j, by chains that continue with add(sum, j). It
  // may read elements that other threads have written. Every thread gets the
  // sum.
  template <typename Add>
  TIERCEL_DEVICE double SumOf(const Thread& t, Shared& s,
                              const Add& add) const {
    double total = 0.0;  // used by thread 0
    Barrier();           // the sums are there
    for (int64_t first = 0; first < p.candidates;
         first += kSums * kSumCandidates) {
      const int64_t begin = first + t.index / kChains * kSumCandidates;
      const int64_t end = begin + kSumCandidates < p.candidates
                              ? begin + kSumCandidates
                              : p.candidates;
      float sum = 0.0f;
      for (int64_t j = begin + t.index % kChains; j < end; j += kChains) {
        sum = add(sum, j);
      }
      for (int half = kChains / 2; half > 0; half /= 2) {
        sum += ShuffleDown(kAllLanes, sum, half, kChains);
      }
      if (t.index % kChains == 0) s.sums[t.index / kChains] = sum;
      Barrier();
      if (t.index == 0) {
        for (int i = 0; i < kSums; ++i) {
          total += static_cast<double>(s.sums[i]);
        }
      }
      Barrier();
    }
    if (t.index == 0) s.total = total;
    Barrier();
    return s.total;
  }
};

// A thread computes t of one candidate: the candidate loses to the greatest of
// its neighbours, or gains with it.
struct AmongNeighbours {
  static constexpr int kMaxThreads = kThreads;
  struct Shared {};
  SelectParams p;
  int64_t stride;
  const float* logs;  // [kv_heads, stride]
  float* t_out;       // [kv_heads, stride]

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    for (int64_t i = t.block * t.count + t.index; i < p.kv_heads * p.candidates;
         i += t.blocks * t.count) {
      const float* l = logs + i / p.candidates * stride;
      const int64_t j = i % p.candidates;
      const int64_t begin = j > p.reach ? j - p.reach : 0;
      const int64_t end =
          p.candidates - j > p.reach + 1 ? j + p.reach + 1 : p.candidates;
      float greatest = l[j];
      for (int64_t other = begin; other < end; ++other) {
        greatest = Greater(greatest, l[other]);
      }
      t_out[i / p.candidates * stride + j] =
          std::fma(p.suppression, l[j] - greatest, l[j]);
    }
  }
};

// A thread computes v of one candidate, for which all heads compete.
struct CompeteHeads {
  static constexpr int kMaxThreads = kThreads;
  struct Shared {};
  SelectParams p;
  int64_t stride;
  float* values;  // [kv_heads, stride]: t, which become v

  TIERCEL_DEVICE void operator()(const Thread& t, Shared&) const {
    constexpr float kWarmth = 1.0f / kTemperature;
    for (int64_t j = t.block * t.count + t.index; j < p.candidates;
         j += t.blocks * t.count) {
      float max = values[j] * kWarmth;
      for (int head = 1; head < p.kv_heads; ++head) {
        max = Greater(max, values[head * stride + j] * kWarmth);
      }
      float sum = 0.0f;
      for (int head = 0; head < p.kv_heads; ++head) {
        sum += ExpLane(values[head * stride + j] * kWarmth - max);
      }
      const float all = max + LogLane(sum);
      for (int head = 0; head < p.kv_heads; ++head) {
        float& v = values[head * stride + j];
        const float share = Greater(v * kWarmth - all, kLnLeastShare);
        v = std::fma(p.exclusivity, share, v);
      }
    }
  }
};

// A block selects the greatest values of one KV head.
struct KeepHeads {
  static constexpr int kMaxThreads = BlockTopK::kThreads;
  using Shared = BlockTopK::Shared;
  const float* values;  // [kv_heads, stride]
  int64_t stride;
  int64_t candidates;
  int64_t kept;
  int32_t* out;  // [kv_heads, kept]

  TIERCEL_DEVICE void operator()(const Thread& t, Shared& s) const {
    BlockTopK::Keep(t, s, values + t.block * stride, candidates, kept,
                    /*offset=*/0, out + t.block * kept);
  }
};

}  // namespace

TIERCEL_KERNEL_BODY(SelectCuda, CUstream_st* stream, const SelectParams& p,
                    int64_t stride, DevicePtr<float> scratch) {
  float* const logs = scratch.raw();
  float* const values = logs + p.kv_heads * stride;
  const LaunchShape of_heads = {.blocks = p.kv_heads, .threads = kThreads};
  int error = Launch(stream, of_heads, MixHeads{p, stride, logs, values});
  if (error != 0) return error;
  error =
      Launch(stream, TurnsFor(p.kv_heads * p.candidates, kThreads, kThreads),
             AmongNeighbours{p, stride, logs, values});
  if (error != 0) return error;
  error = Launch(stream, TurnsFor(p.candidates, kThreads, kThreads),
                 CompeteHeads{p, stride, values});
  if (error != 0) return error;
  const int64_t kept = p.budget < p.candidates ? p.budget : p.candidates;
  return Launch(stream, of_heads,
                KeepHeads{values, stride, p.candidates, kept, p.out.raw()});
}

}  // namespace tiercel
