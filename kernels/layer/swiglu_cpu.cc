#include "kernels/layer/swiglu.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {
namespace {

TIERCEL_INLINE F32x16 Lanes16(F32x16 gate, F32x16 up) {
  const F32x16 x = Min(Set1(88.0f), Zero() - gate);
  return gate / (Set1(1.0f) + Exp(x)) * up;
}

}  // namespace

void SwigluRange(const float* gate, const float* up, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    Store(Lanes16(Load(gate + i), Load(up + i)), out + i);
  }
  const int rest = static_cast<int>(n - i);
  StoreN(Lanes16(LoadN(gate + i, rest), LoadN(up + i, rest)), out + i, rest);
}

}  // namespace tiercel::TIERCEL_ISA_NS
