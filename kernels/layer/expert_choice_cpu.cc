#include "kernels/layer/expert_choice.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {

float ExpertPowers(const float* logits, int experts, float* powers) {
  float max = logits[0];
  for (int e = 1; e < experts; ++e) {
    if (logits[e] != logits[e] || logits[e] > max) max = logits[e];
  }
  F32x16 sum = Zero();
  for (int e = 0; e < experts; e += 16) {
    const int lanes = experts - e < 16 ? experts - e : 16;
    StoreN(Exp(LoadN(logits + e, lanes) - Set1(max)), powers + e, lanes);
    sum = sum + LoadN(powers + e, lanes);
  }
  return ReduceAdd(sum);
}

}  // namespace tiercel::TIERCEL_ISA_NS
