#include <cmath>
#include <vector>

#include "kernels/kv/key_norms.h"
#include "kernels/kv/kv_row.h"
#include "kernels/number/half.h"

namespace tiercel {

void KeyNormsReference(const KeyNormsParams& p) {
  const KvLayout& kv = p.layout;
  std::vector<float> key(static_cast<size_t>(kv.head_dim));
  for (int head = 0; head < kv.kv_heads; ++head) {
    for (int64_t j = p.first; j < p.last; ++j) {
      KvRowToF32(kv.type_k,
                 p.pages[j / kPageTokens - p.first_page] +
                     kv.KOffset(head, static_cast<int>(j % kPageTokens)),
                 kv.head_dim, key.data());
      float sum = 0.0f;
      for (const float x : key) sum = std::fma(x, x, sum);
      p.out[head * p.out_stride + j - p.first] = F16FromF32(std::sqrt(sum));
    }
  }
}

}  // namespace tiercel
