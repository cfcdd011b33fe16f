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

// Philox4x32-10 of 16 counters at once (philox.h has it for one). The loops
// over lanes become vectors.
void NoiseWords(uint64_t seed, uint64_t position, uint32_t first_id,
                uint32_t* words) {
  constexpr int kGroups = kNoiseIds / 4;
  uint32_t c0[kGroups];
  uint32_t c1[kGroups];
  uint32_t c2[kGroups];
  uint32_t c3[kGroups];
  for (int i = 0; i < kGroups; ++i) {
    c0[i] = static_cast<uint32_t>(position);
    c1[i] = static_cast<uint32_t>(position >> 32);
    c2[i] = first_id / 4 + static_cast<uint32_t>(i);
    c3[i] = 0;
  }
  auto k0 = static_cast<uint32_t>(seed);
  auto k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kGroups; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[i];
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(p1);
      c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kGroups; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

bool SomeMayWin(const float* probabilities, const uint32_t* words,
                double least) {
  int some = 0;
  for (int i = 0; i < kNoiseIds; ++i) {
    // OpenUniform of philox.h
    const double u = (static_cast<double>(words[i]) + 0.5) * 0x1p-32;
    some |= least * static_cast<double>(probabilities[i]) > 1 - u ? 1 : 0;
  }
  return some != 0;
}

}  // namespace tiercel::TIERCEL_ISA_NS
