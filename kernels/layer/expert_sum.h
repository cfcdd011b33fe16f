#ifndef TIERCEL_KERNELS_LAYER_EXPERT_SUM_H_
#define TIERCEL_KERNELS_LAYER_EXPERT_SUM_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// Adds the results of a row's experts to it:
//
//   sum = fma(shares[r, i], y[items[r, i], n], sum) for i = 0, 1, ..., from 0
//   out[r, n] = out[r, n] + sum
struct ExpertSumParams {
  DevicePtr<const float> y;  // [num_items, y_stride]
  int64_t y_stride;          // floats, >= dim
  int64_t num_items;
  const int32_t* items;           // [rows, used]
  DevicePtr<const float> shares;  // [rows, used]
  int64_t rows;                   // 0 is allowed
  int used;
  int64_t dim;
  DevicePtr<float> out;  // [rows, out_stride]
  int64_t out_stride;    // floats, >= dim
};
absl::Status ExpertSum(Stream& stream, const ExpertSumParams& p);

// ---- Its bodies ----

// Computes `dim` columns of one row.
using ExpertSumRowFn = void(const float* y, int64_t y_stride,
                            const int32_t* items, const float* shares, int used,
                            int64_t dim, float* out);

ExpertSumRowFn ExpertSumRowReference;
namespace portable {
ExpertSumRowFn ExpertSumRow;
}
namespace avx2 {
ExpertSumRowFn ExpertSumRow;
}
namespace avx512 {
ExpertSumRowFn ExpertSumRow;
}

// Queues the work on a GPU's stream, with the same bits; p.items is in its
// memory. Returns a cudaError_t.
TIERCEL_KERNEL(ExpertSumCuda, CUstream_st* stream, const ExpertSumParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_EXPERT_SUM_H_
