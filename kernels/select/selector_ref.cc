#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/number/half.h"
#include "kernels/number/reference_math.h"
#include "kernels/select/selector.h"
#include "kernels/select/selector_body.h"

namespace tiercel {
namespace {

using Floats = std::vector<float>;

// The sum over j = 0..n - 1 in the contract's order; add(j, lane) adds j to its
// lane j % 16.
template <typename Add>
double SumOf(size_t n, Add add) {
  double sum = 0.0;
  for (size_t first = 0; first < n; first += kSumCandidates) {
    float lane[16] = {};
    for (size_t j = first; j < std::min<size_t>(n, first + kSumCandidates);
         ++j) {
      add(j, lane[j % 16]);
    }
    sum += static_cast<double>(SumLanes(lane));
  }
  return sum;
}

// f: importance^2 divided by its sum.
Floats Shares(const float* importance, size_t n) {
  Floats f(n);
  float max = 0.0f;
  for (size_t j = 0; j < n; ++j) {
    const float x = importance[j];
    f[j] = std::isfinite(x) && x > 0.0f ? x : 0.0f;
    max = std::max(max, f[j]);
  }
  for (float& x : f) {
    x /= max > 0.0f ? max : 1.0f;
    x *= x;
  }
  const double sum = SumOf(n, [&](size_t j, float& lane) { lane += f[j]; });
  for (float& x : f) x /= sum > 0.0 ? static_cast<float>(sum) : 1.0f;
  return f;
}

float AgePriorOf(size_t j, size_t n) {
  const auto last = static_cast<float>(std::max<size_t>(n - 1, 1));
  const float age = static_cast<float>(j) / last;
  const float left = (last - static_cast<float>(j)) / last;
  const float slope = ExpLane(kAgePower * LogLane(std::max(age, kLeastShare)));
  const float edge = LogLane(std::max(left, kLeastShare));
  return std::fma(kEdgeWeight, edge, slope * -kAgeSlope) * kAgeWeight;
}

// r: the prior divided by its sum.
Floats Priors(const uint16_t* norms, size_t n) {
  Floats r(n);
  for (size_t j = 0; j < n; ++j) {
    float norm = F32FromF16(norms[j]);
    norm = std::isnan(norm) ? kGreatestNorm
                            : std::clamp(norm, kLeastNorm, kGreatestNorm);
    r[j] = ExpLane(std::fma(kNormPower, LogLane(norm), AgePriorOf(j, n)));
  }
  const double sum = SumOf(n, [&](size_t j, float& lane) { lane += r[j]; });
  for (float& x : r) x /= static_cast<float>(sum);
  return r;
}

// l: the logarithms of the mixture.
Floats Mixed(const Floats& f, const Floats& r, float most_prior) {
  const double toward = SumOf(f.size(), [&](size_t j, float& lane) {
    lane = std::fma(f[j], f[j] - r[j], lane);
  });
  const double distance = SumOf(f.size(), [&](size_t j, float& lane) {
    lane = std::fma(f[j] - r[j], f[j] - r[j], lane);
  });
  const float lambda = std::clamp(
      static_cast<float>(toward / std::max(distance, kLeastDistance)), 0.0f,
      most_prior);
  Floats l(f.size());
  for (size_t j = 0; j < f.size(); ++j) {
    l[j] = LogLane(std::max(std::fma(lambda, r[j], (1.0f - lambda) * f[j]),
                            kLeastMixture));
  }
  return l;
}

// t: each candidate compared with its neighbours.
Floats AmongNeighbours(const Floats& l, int64_t reach, float suppression) {
  Floats t(l.size());
  const auto n = static_cast<int64_t>(l.size());
  for (int64_t j = 0; j < n; ++j) {
    const auto begin = l.begin() + std::max<int64_t>(0, j - reach);
    const auto end = l.begin() + std::min(n, j + reach + 1);
    const auto i = static_cast<size_t>(j);
    t[i] = std::fma(suppression, l[i] - *std::max_element(begin, end), l[i]);
  }
  return t;
}

// Turns t of all heads into v.
void Exclude(std::vector<Floats>& t, float exclusivity) {
  const float warmth = 1.0f / kTemperature;
  for (size_t j = 0; j < t[0].size(); ++j) {
    float max = -std::numeric_limits<float>::infinity();
    for (const Floats& head : t) max = std::max(max, head[j] * warmth);
    float sum = 0.0f;
    for (const Floats& head : t) sum += ExpLane(head[j] * warmth - max);
    const float all = max + LogLane(sum);
    for (Floats& head : t) {
      const float share = std::max(head[j] * warmth - all, kLnLeastShare);
      head[j] = std::fma(exclusivity, share, head[j]);
    }
  }
}

}  // namespace

void SelectReference(const SelectParams& p) {
  const auto n = static_cast<size_t>(p.candidates);
  std::vector<Floats> v;
  for (int64_t head = 0; head < p.kv_heads; ++head) {
    const Floats f = Shares(p.importance.raw() + head * p.importance_stride, n);
    const Floats r = Priors(p.norms.raw() + head * p.norms_stride, n);
    v.push_back(AmongNeighbours(Mixed(f, r, p.most_prior),
                                std::min(p.reach, p.candidates - 1),
                                p.suppression));
  }
  Exclude(v, p.exclusivity);
  const int64_t kept = std::min(p.budget, p.candidates);
  for (size_t head = 0; head < v.size(); ++head) {
    std::vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return v[head][static_cast<size_t>(a)] > v[head][static_cast<size_t>(b)];
    });
    int32_t* const out = p.out.raw() + static_cast<int64_t>(head) * kept;
    std::copy_n(order.begin(), kept, out);
    std::sort(out, out + kept);
  }
}

}  // namespace tiercel
