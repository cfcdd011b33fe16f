// Lanes are candidates. A head has two arrays: one becomes t, the other holds
// the prior and then the windows' maxima.

#include "kernels/select/selector_body.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

constexpr int kLanes = 16;

TIERCEL_INLINE int LanesAt(int64_t i, int64_t n) {
  return n - i < kLanes ? static_cast<int>(n - i) : kLanes;
}

// Keeps the first n lanes; the others become zero.
TIERCEL_INLINE F32x16 FirstLanes(F32x16 a, int n) {
  if (n == kLanes) return a;
  float lane[kLanes];
  Store(a, lane);
  return LoadN(lane, n);
}

TIERCEL_INLINE F32x16 LoadImportance(const float* p, int n) {
  const F32x16 x = LoadN(p, n);
  return Max(Fma(x, Zero(), x), Zero());  // Fma makes an infinity NaN
}

TIERCEL_INLINE F32x16 LoadNorms(const uint16_t* p, int n) {
  uint16_t half[kLanes] = {};
  if (n < kLanes) {
    memcpy(half, p, static_cast<size_t>(n) * sizeof(half[0]));
    p = half;
  }
  return Max(Min(LoadF16(p), Set1(kGreatestNorm)), Set1(kLeastNorm));
}

// Two sums over all candidates. body(i, n, a, b) adds n candidates, from i on,
// to the chains a and b.
struct Sums {
  double a;
  double b;
};
template <typename Body>
TIERCEL_INLINE Sums SumCandidates(int64_t candidates, Body body) {
  Sums sums = {0.0, 0.0};
  for (int64_t first = 0; first < candidates; first += kSumCandidates) {
    const int64_t end = first + kSumCandidates < candidates
                            ? first + kSumCandidates
                            : candidates;
    F32x16 a = Zero();
    F32x16 b = Zero();
    for (int64_t i = first; i < end; i += kLanes) {
      body(i, LanesAt(i, candidates), &a, &b);
    }
    sums.a += static_cast<double>(ReduceAdd(a));
    sums.b += static_cast<double>(ReduceAdd(b));
  }
  return sums;
}

// Computes importance^2 in `f` and the prior in `r`, and returns their sums.
// The lanes after the last candidate become zero.
Sums Exponentiate(const HeadChoice& h, float* f, float* r) {
  F32x16 largest = Zero();
  for (int64_t i = 0; i < h.candidates; i += kLanes) {
    largest = Max(largest,
                  LoadImportance(h.importance + i, LanesAt(i, h.candidates)));
  }
  const float max = ReduceMax(largest);
  const F32x16 unit = Set1(max > 0.0f ? max : 1.0f);
  return SumCandidates(
      h.candidates, [&](int64_t i, int n, F32x16* sum_f, F32x16* sum_r) {
        const F32x16 root = LoadImportance(h.importance + i, n) / unit;
        const F32x16 importance = root * root;
        const F32x16 prior =
            FirstLanes(Exp(Fma(Set1(kNormPower), Log(LoadNorms(h.norms + i, n)),
                               Load(h.prior + i))),
                       n);
        Store(importance, f + i);
        Store(prior, r + i);
        *sum_f = *sum_f + importance;
        *sum_r = *sum_r + prior;
      });
}

// Computes the logarithm of the mixture of f and r, and stores it in both.
void Mix(const HeadChoice& h, const Sums& sums, float* f, float* r) {
  const F32x16 f_unit = Set1(sums.a > 0.0 ? static_cast<float>(sums.a) : 1.0f);
  const F32x16 r_unit = Set1(static_cast<float>(sums.b));
  const Sums moments = SumCandidates(
      h.candidates, [&](int64_t i, int, F32x16* toward, F32x16* distance) {
        const F32x16 share = Load(f + i) / f_unit;
        const F32x16 prior = Load(r + i) / r_unit;
        const F32x16 difference = share - prior;
        Store(share, f + i);
        Store(prior, r + i);
        *toward = Fma(share, difference, *toward);
        *distance = Fma(difference, difference, *distance);
      });
  const double distance =
      moments.b > kLeastDistance ? moments.b : kLeastDistance;
  auto lambda = static_cast<float>(moments.a / distance);
  lambda = lambda > 0.0f ? lambda : 0.0f;
  lambda = lambda < h.most_prior ? lambda : h.most_prior;
  const F32x16 rest = Set1(1.0f - lambda);
  for (int64_t i = 0; i < h.candidates; i += kLanes) {
    const F32x16 mixture = Fma(Set1(lambda), Load(r + i), rest * Load(f + i));
    const F32x16 l = Log(Max(mixture, Set1(kLeastMixture)));
    Store(l, f + i);
    Store(l, r + i);
  }
}

void FillLeast(float* begin, const float* end) {
  for (; begin < end; ++begin) *begin = -__FLT_MAX__;
}

}  // namespace

void ComputeAgePrior(const AgePrior& a) {
  const auto last = static_cast<float>(a.candidates > 1 ? a.candidates - 1 : 1);
  float lane[kLanes];
  for (int i = 0; i < kLanes; ++i) lane[i] = static_cast<float>(i);
  for (int64_t i = a.begin; i < a.end; i += kLanes) {
    const F32x16 j = Load(lane) + Set1(static_cast<float>(i));
    const F32x16 age = j / Set1(last);
    const F32x16 left = (Set1(last) - j) / Set1(last);
    const F32x16 slope =
        Exp(Set1(kAgePower) * Log(Max(age, Set1(kLeastShare))));
    const F32x16 edge = Log(Max(left, Set1(kLeastShare)));
    const F32x16 prior = Fma(Set1(kEdgeWeight), edge, slope * Set1(-kAgeSlope));
    Store(prior * Set1(kAgeWeight), a.prior + i);
  }
}

void ComputeHeadChoice(const HeadChoice& h) {
  float* const l = h.t;
  float* const inner = h.window + h.reach;  // element of candidate 0
  Mix(h, Exponentiate(h, l, inner), l, inner);

  // The maxima of windows that begin `reach` before their candidates: first of
  // windows of one candidate, then of windows twice as wide each time, and last
  // of two such windows that overlap.
  const int64_t width = 2 * h.reach + 1;
  const int64_t end = h.candidates + 2 * h.reach;
  FillLeast(h.window, inner);
  FillLeast(inner + h.candidates, h.window + end + 2 * h.reach + 48);
  int64_t reached = 1;
  for (; 2 * reached <= width; reached *= 2) {
    for (int64_t i = 0; i < end; i += kLanes) {
      Store(Max(Load(h.window + i), Load(h.window + i + reached)),
            h.window + i);
    }
  }
  for (int64_t i = 0; i < h.candidates; i += kLanes) {
    const F32x16 greatest =
        Max(Load(h.window + i), Load(h.window + i + width - reached));
    const F32x16 own = Load(l + i);
    Store(Fma(Set1(h.suppression), own - greatest, own), h.t + i);
  }
}

void ComputeHeadRivals(const HeadRivals& r) {
  const F32x16 warmth = Set1(1.0f / kTemperature);
  for (int64_t i = r.begin; i < r.end; i += kLanes) {
    F32x16 largest = Load(r.t + i) * warmth;
    for (int head = 1; head < r.kv_heads; ++head) {
      largest = Max(largest, Load(r.t + head * r.stride + i) * warmth);
    }
    F32x16 sum = Zero();
    for (int head = 0; head < r.kv_heads; ++head) {
      sum = sum + Exp(Load(r.t + head * r.stride + i) * warmth - largest);
    }
    const F32x16 all = largest + Log(sum);
    for (int head = 0; head < r.kv_heads; ++head) {
      float* const t = r.t + head * r.stride + i;
      const F32x16 share = Max(Load(t) * warmth - all, Set1(kLnLeastShare));
      Store(Fma(Set1(r.exclusivity), share, Load(t)), t);
    }
  }
}

}  // namespace tiercel::TIERCEL_ISA_NS
