#include "kernels/simd/simd.h"
#include "kernels/token/distribution_body.h"

namespace tiercel::TIERCEL_ISA_NS {

float GreatestLogit(const float* logits, int64_t n) {
  F32x16 greatest = Set1(logits[0]);
  F32x16 poison = Zero();  // 0 times a number that is not finite is NaN
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F32x16 some = Load(logits + i);
    greatest = Max(greatest, some);
    poison = Fma(some, Zero(), poison);
  }
  float result = ReduceMax(greatest);
  float faults = ReduceAdd(poison);
  for (; i < n; ++i) {
    result = result > logits[i] ? result : logits[i];
    faults += logits[i] * 0.0f;
  }
  return result + faults;
}

namespace {

TIERCEL_INLINE F32x16 Exponentiate(F32x16 logits, float greatest,
                                   float temperature) {
  const F32x16 x = (logits - Set1(greatest)) / Set1(temperature);
  return Max(Zero(), Exp(x) - Exp(Set1(-87.0f)));
}

}  // namespace

double ExponentiateLogits(const float* logits, int64_t n, float greatest,
                          float temperature, float* weights) {
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kWeightsTogether) {
    const int64_t rest = n - begin;
    const int64_t end = rest < kWeightsTogether ? n : begin + kWeightsTogether;
    F32x16 lanes = Zero();
    int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
      const F32x16 some = Exponentiate(Load(logits + i), greatest, temperature);
      Store(some, weights + i);
      lanes = lanes + some;
    }
    if (i < end) {
      const int last = static_cast<int>(end - i);
      StoreN(Exponentiate(LoadN(logits + i, last), greatest, temperature),
             weights + i, last);
      lanes = lanes + LoadN(weights + i, last);
    }
    sum += static_cast<double>(ReduceAdd(lanes));
  }
  return sum;
}

}  // namespace tiercel::TIERCEL_ISA_NS
