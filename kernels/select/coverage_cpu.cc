#include "kernels/select/coverage.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

constexpr int kLanes = 16;

TIERCEL_INLINE int LanesAt(int64_t i, int64_t n) {
  return n - i < kLanes ? static_cast<int>(n - i) : kLanes;
}

float SumOf(const float* x, int64_t n) {
  F32x16 sum = Zero();
  for (int64_t i = 0; i < n; i += kLanes) {
    sum = sum + LoadN(x + i, LanesAt(i, n));
  }
  return ReduceAdd(sum);
}

}  // namespace

HeadSums ExponentiatePositions(float* scores, int64_t positions,
                               int64_t newest) {
  F32x16 largest = Set1(scores[0]);
  F32x16 fault = Zero();  // zero, or NaN
  for (int64_t i = 0; i < positions; i += kLanes) {
    const int n = LanesAt(i, positions);
    const F32x16 x = LoadN(scores + i, n);
    fault = Fma(x, Zero(), fault);
    if (n == kLanes) largest = Max(largest, x);
  }
  const float none = ReduceAdd(fault);
  if (!(none == 0.0f)) return {none, none};
  float max = ReduceMax(largest);
  for (int64_t i = positions / kLanes * kLanes; i < positions; ++i) {
    max = scores[i] > max ? scores[i] : max;
  }
  for (int64_t i = 0; i < positions; i += kLanes) {
    const int n = LanesAt(i, positions);
    StoreN(Exp(LoadN(scores + i, n) - Set1(max)), scores + i, n);
  }
  return {SumOf(scores, positions), SumOf(scores + newest, positions - newest)};
}

}  // namespace tiercel::TIERCEL_ISA_NS
