#ifndef TIERCEL_KERNELS_KV_KV_CONVERT_H_
#define TIERCEL_KERNELS_KV_KV_CONVERT_H_

#include <cstddef>
#include <cstdint>

#include "kernels/number/dtype.h"
#include "lib/status/status_forward.h"

namespace tiercel {

class Stream;

// Converts rows of K or V (kernels/kv/kv_layout.h) from one type to another,
// rounding as KvWrite does. If both types are the same, rows are copied.
// Errors: invalid_shape, invalid_kv_type; on a GPU also out_of_memory and
// device_failed.
struct KvConvertParams {
  // Consecutive rows of `head_dim` elements; the two do not overlap.
  struct Run {
    const std::byte* from;
    std::byte* to;
    int64_t rows;
  };
  DType from;
  DType to;
  int head_dim;  // a multiple of 8
  const Run* runs;
  int64_t num_runs;
};
absl::Status KvConvert(Stream& stream, const KvConvertParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_CONVERT_H_
