#include <cmath>

#include "kernels/layer/rope.h"

namespace tiercel {

void RopeAnglesReference(const RopeAnglesParams& p, int64_t begin,
                         int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const auto position = static_cast<double>(p.position + r);
    for (int i = 0; i < p.half; ++i) {
      const double angle = position * p.inv_freq[i];
      p.cos_out[r * p.half + i] = static_cast<float>(p.scale * std::cos(angle));
      p.sin_out[r * p.half + i] = static_cast<float>(p.scale * std::sin(angle));
    }
  }
}

void RopeReference(const RopeParams& p, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const float* cos = p.cos.raw() + r * p.half;
    const float* sin = p.sin.raw() + r * p.half;
    for (int tensor = 0; tensor < p.num_tensors; ++tensor) {
      const RopeParams::Heads& heads = p.tensors[tensor];
      for (int h = 0; h < heads.count; ++h) {
        float* first =
            heads.x.raw() + r * heads.stride + int64_t{h} * p.head_dim;
        float* second = first + p.half;
        for (int i = 0; i < p.half; ++i) {
          const float a = first[i];
          const float b = second[i];
          first[i] = a * cos[i] - b * sin[i];
          second[i] = b * cos[i] + a * sin[i];
        }
      }
    }
  }
}

}  // namespace tiercel
