#ifndef TIERCEL_KERNELS_LAYER_RMS_NORM_H_
#define TIERCEL_KERNELS_LAYER_RMS_NORM_H_

#include <cstdint>

#include "lib/status/status_forward.h"

namespace tiercel {

class Stream;

// out[r, g, i] = x[r, g, i] / sqrt(mean_i x[r, g, i]^2 + eps) * weight[i]
//
// groups = 1 is the norm of a hidden state; groups = heads, dim = head_dim is
// the q/k norm of Qwen3. Sums are made by 16 chains of fma, then a fixed tree.
struct RmsNormParams {
  const float* x;       // [rows, x_stride], a row is [groups, dim]
  int64_t x_stride;     // floats from one row to the next
  const float* weight;  // [dim]
  float eps;            // > 0
  int64_t rows;         // 0 is allowed
  int groups;
  int dim;
  float* out;  // [rows, out_stride]; may be x
  int64_t out_stride;
};
absl::Status RmsNorm(Stream& stream, const RmsNormParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_RMS_NORM_H_
