#include <cmath>

#include "kernels/layer/rms_norm.h"
#include "kernels/number/reference_math.h"

namespace tiercel {

void RmsNormGroupReference(const float* x, const float* weight, float eps,
                           int dim, float* out) {
  float lane[16] = {};
  for (int i = 0; i < dim; ++i) {
    lane[i % 16] = std::fma(x[i], x[i], lane[i % 16]);
  }
  const float mean = SumLanes(lane) / static_cast<float>(dim);
  const float inverse = 1.0f / std::sqrt(mean + eps);
  for (int i = 0; i < dim; ++i) out[i] = x[i] * inverse * weight[i];
}

}  // namespace tiercel
