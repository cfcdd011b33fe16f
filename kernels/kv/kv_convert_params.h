#ifndef TIERCEL_KERNELS_KV_KV_CONVERT_PARAMS_H_
#define TIERCEL_KERNELS_KV_KV_CONVERT_PARAMS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/number/dtype.h"

namespace tiercel {

// Rows of K or V (kernels/kv/kv_layout.h) as another type: each element as
// `from` reads, rounded to `to` as KvWrite rounds. Of the same type they are
// copied. Errors: invalid_shape, invalid_kv_type; on a
// GPU out_of_memory too, and device_failed.
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

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_KV_KV_CONVERT_PARAMS_H_
