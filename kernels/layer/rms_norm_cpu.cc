#include "kernels/layer/rms_norm.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {

void RmsNormGroup(const float* x, const float* weight, float eps, int dim,
                  float* out) {
  const int full = dim / 16 * 16;
  const int rest = dim - full;
  F32x16 squares = Zero();
  for (int i = 0; i < full; i += 16) {
    squares = Fma(Load(x + i), Load(x + i), squares);
  }
  const F32x16 tail = LoadN(x + full, rest);
  squares = Fma(tail, tail, squares);

  const float mean = ReduceAdd(squares) / static_cast<float>(dim);
  const F32x16 inverse = Set1(1.0f / __builtin_sqrtf(mean + eps));
  for (int i = 0; i < full; i += 16) {
    Store(Load(x + i) * inverse * Load(weight + i), out + i);
  }
  StoreN(tail * inverse * LoadN(weight + full, rest), out + full, rest);
}

}  // namespace tiercel::TIERCEL_ISA_NS
