#include <cmath>

#include "kernels/number/half.h"
#include "kernels/select/mean_scores.h"

namespace tiercel {

void MeanScoresReference(const MeanScoresParams& p) {
  const int group = p.heads / p.kv_heads;
  for (int h = 0; h < p.heads; ++h) {
    const float* const q = p.q + int64_t{h} * p.head_dim;
    for (int64_t c = 0; c < p.num_chunks; ++c) {
      const uint16_t* const mean =
          p.means + h / group * p.means_stride + c * p.head_dim;
      float dot = 0.0f;
      for (int d = 0; d < p.head_dim; ++d) {
        dot = std::fma(q[d], F32FromF16(mean[d]), dot);
      }
      p.out[h * p.out_stride + c] = dot * p.scale;
    }
  }
}

}  // namespace tiercel
