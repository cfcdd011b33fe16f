#include "kernels/select/importance.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

constexpr int kLanes = 16;
constexpr float kLeast = -__FLT_MAX__;

// Loads the last n scores. The other lanes become -infinity, as for candidates
// that are not seen.
TIERCEL_INLINE F32x16 LoadLast(const float* scores, int n) {
  float lane[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    lane[i] = i < n ? scores[i] : -__builtin_inff();
  }
  return Load(lane);
}

// e^((score - max) / 2), which is exactly 0 if Exp is at its floor.
TIERCEL_INLINE F32x16 RootWeight(F32x16 score, F32x16 max) {
  return Exp((score - max) * Set1(0.5f)) - Exp(Set1(-87.0f));
}

// Calls body(i, scores i..i + 15).
template <typename Body>
TIERCEL_INLINE void ForScores(const float* scores, int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, Load(scores + i));
  if (i < n) body(i, LoadLast(scores + i, static_cast<int>(n - i)));
}

}  // namespace

RootWeights WeighRoots(const float* scores, int64_t candidates) {
  F32x16 largest = Set1(kLeast);
  F32x16 fault = Zero();  // zero, or NaN
  ForScores(scores, candidates, [&](int64_t, F32x16 x) {
    const F32x16 seen = Max(Set1(kLeast), x);  // no -infinity, but NaN
    largest = Max(largest, seen);
    fault = Fma(seen, Zero(), fault);
  });
  if (!(ReduceAdd(fault) == 0.0f)) return {0.0f, 0.0f};
  const float max = ReduceMax(largest);
  F32x16 total = Zero();
  ForScores(scores, candidates, [&](int64_t, F32x16 x) {
    const F32x16 weight = RootWeight(x, Set1(max));
    total = Fma(weight, weight, total);
  });
  return {max, __builtin_sqrtf(ReduceAdd(total))};
}

void AddRoots(const float* scores, int64_t candidates,
              const RootWeights& weights, float* importance) {
  const F32x16 max = Set1(weights.max);
  const F32x16 length = Set1(weights.length);
  ForScores(scores, candidates, [&](int64_t i, F32x16 x) {
    const int64_t rest = candidates - i;
    const int n = rest < kLanes ? static_cast<int>(rest) : kLanes;
    StoreN(LoadN(importance + i, n) + RootWeight(x, max) / length,
           importance + i, n);
  });
}

}  // namespace tiercel::TIERCEL_ISA_NS
