#include "kernels/kv/kv_row.h"
#include "kernels/kv/kv_write.h"

namespace tiercel {

void KvWriteReference(const KvWriteParams& p) {
  const KvLayout& kv = p.layout;
  for (int64_t r = 0; r < p.rows; ++r) {
    const int64_t position = p.position + r;
    const auto cell = static_cast<int>(position % kPageTokens);
    std::byte* page = p.pages[position / kPageTokens - p.first_page];
    for (int head = 0; head < kv.kv_heads; ++head) {
      const int64_t column = int64_t{head} * kv.head_dim;
      KvRowFromF32(kv.type_k, p.k + r * p.k_stride + column, kv.head_dim,
                   page + kv.KOffset(head, cell));
      KvRowFromF32(kv.type_v, p.v + r * p.v_stride + column, kv.head_dim,
                   page + kv.VOffset(head, cell));
    }
  }
}

}  // namespace tiercel
