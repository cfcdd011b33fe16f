#include <vector>

#include "kernels/kv/kv_convert.h"
#include "kernels/kv/kv_row.h"

namespace tiercel {

void KvRowConvertReference(DType from, const std::byte* row, DType to,
                           int head_dim, std::byte* out) {
  std::vector<float> values(static_cast<size_t>(head_dim));
  KvRowToF32(from, row, head_dim, values.data());
  KvRowFromF32(to, values.data(), head_dim, out);
}

}  // namespace tiercel
