#include "kernels/layer/embed.h"
#include "kernels/layer/packed_matrix.h"

namespace tiercel {

void EmbedReference(const EmbedParams& p, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    p.table->UnpackRow(p.ids[r], p.out + r * p.table->cols());
  }
}

}  // namespace tiercel
