#ifndef TIERCEL_KERNELS_KV_KV_ROW_H_
#define TIERCEL_KERNELS_KV_KV_ROW_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/number/dtype.h"

namespace tiercel {

// The types of K and V, as errors name them.
inline constexpr char kKvTypeNames[] = "f32, f16, bf16, q8_0 or q4_0";

// Returns true if K or V can be stored as `type` in rows of `head_dim`
// elements: f32, f16 and bf16 always, q8_0 and q4_0 if rows are whole blocks of
// 32.
bool IsKvType(DType type, int head_dim);

// Checks the type for `op`. Errors: invalid_kv_type if not IsKvType.
absl::Status CheckKvType(std::string_view op, DType type, int head_dim);

// Checks the shape of the query rows that `op` compares with KV of this layout,
// `q_stride` floats apart. Errors: invalid_sizes.
absl::Status CheckQueryRows(std::string_view op, int64_t rows, int heads,
                            int64_t q_stride, const KvLayout& kv);

// Converts one row of K or V (kernels/kv/kv_layout.h) to floats, exactly.
void KvRowToF32(DType type, const std::byte* row, int head_dim, float* out);

// Converts floats to one row, rounding to nearest, ties to even. For q8_0, per
// block of 32:
//   d = max|x| / 127 (float), stored as f16;  q = round(x / d), within +-127
// For q4_0:
//   d = m / -8, where m is the element with the greatest magnitude, and
//   positive if there are two;  q = round(x / d) + 8, from 0 to 15
// A block that holds a NaN or an infinity gets d = NaN, so that all its
// elements are NaN.
void KvRowFromF32(DType type, const float* x, int head_dim, std::byte* row);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_ROW_H_
