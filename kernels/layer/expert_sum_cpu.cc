#include "kernels/layer/expert_sum.h"
#include "kernels/simd/simd.h"

namespace tiercel::TIERCEL_ISA_NS {

void ExpertSumRow(const float* y, int64_t y_stride, const int32_t* items,
                  const float* shares, int used, int64_t dim, float* out) {
  int64_t n = 0;
  for (; n + 16 <= dim; n += 16) {
    F32x16 sum = Zero();
    for (int i = 0; i < used; ++i) {
      sum = Fma(Set1(shares[i]), Load(y + items[i] * y_stride + n), sum);
    }
    Store(Load(out + n) + sum, out + n);
  }
  const int rest = static_cast<int>(dim - n);
  F32x16 sum = Zero();
  for (int i = 0; i < used; ++i) {
    sum = Fma(Set1(shares[i]), LoadN(y + items[i] * y_stride + n, rest), sum);
  }
  StoreN(LoadN(out + n, rest) + sum, out + n, rest);
}

}  // namespace tiercel::TIERCEL_ISA_NS
