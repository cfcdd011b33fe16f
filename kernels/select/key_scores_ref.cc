#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kv/kv_row.h"
#include "kernels/select/key_scores.h"

namespace tiercel {

void KeyScoresReference(const KeyScoresParams& p) {
  const KvLayout& kv = p.layout;
  const int group = p.heads / kv.kv_heads;
  std::vector<float> key(static_cast<size_t>(kv.head_dim));
  for (int h = 0; h < p.heads; ++h) {
    for (int64_t j = p.first; j < p.last; ++j) {
      KvRowToF32(kv.type_k,
                 p.pages[j / kPageTokens - p.first_page].raw() +
                     kv.KOffset(h / group, static_cast<int>(j % kPageTokens)),
                 kv.head_dim, key.data());
      for (int64_t r = 0; r < p.rows; ++r) {
        const float* q = p.q.raw() + r * p.q_stride + int64_t{h} * kv.head_dim;
        float dot = 0.0f;
        for (size_t d = 0; d < key.size(); ++d) {
          dot = std::fma(q[d], key[d], dot);
        }
        p.out.raw()[(r * p.heads + h) * p.out_stride + j - p.first] =
            j <= p.position + r ? dot * p.scale
                                : -std::numeric_limits<float>::infinity();
      }
    }
  }
}

}  // namespace tiercel
