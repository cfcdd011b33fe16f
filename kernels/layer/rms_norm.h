#ifndef TIERCEL_KERNELS_LAYER_RMS_NORM_H_
#define TIERCEL_KERNELS_LAYER_RMS_NORM_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// out[r, g, i] = x[r, g, i] / sqrt(mean_i x[r, g, i]^2 + eps) * weight[i]
//
// groups = 1 is the norm of a hidden state; groups = heads, dim = head_dim is
// the q/k norm of Qwen3. Sums are made by 16 chains of fma, then a fixed tree.
struct RmsNormParams {
  DevicePtr<const float> x;       // [rows, x_stride], a row is [groups, dim]
  int64_t x_stride;               // floats from one row to the next
  DevicePtr<const float> weight;  // [dim]
  float eps;                      // > 0
  int64_t rows;                   // 0 is allowed
  int groups;
  int dim;
  DevicePtr<float> out;  // [rows, out_stride]; may be x
  int64_t out_stride;
};
absl::Status RmsNorm(Stream& stream, const RmsNormParams& p);

// ---- Its bodies ----

// Computes one group: out[i] = (x[i] * (1 / sqrt(sum / dim + eps))) *
// weight[i]. The sum of squares is made by 16 chains of fma over i % 16, which
// are then added pairwise: i and i + 8, i + 4, i + 2, i + 1.
using RmsNormGroupFn = void(const float* x, const float* weight, float eps,
                            int dim, float* out);

RmsNormGroupFn RmsNormGroupReference;
namespace portable {
RmsNormGroupFn RmsNormGroup;
}
namespace avx2 {
RmsNormGroupFn RmsNormGroup;
}
namespace avx512 {
RmsNormGroupFn RmsNormGroup;
}
namespace avx512vnni {
RmsNormGroupFn RmsNormGroup;
}

// Queues all groups on a GPU's stream, with the same bits. Returns a
// cudaError_t.
TIERCEL_KERNEL(RmsNormCuda, CUstream_st* stream, const RmsNormParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_RMS_NORM_H_
