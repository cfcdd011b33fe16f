#ifndef TIERCEL_KERNELS_LAYER_SWIGLU_H_
#define TIERCEL_KERNELS_LAYER_SWIGLU_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/device/stream.h"

namespace tiercel {

// out[r, i] = gate[r, i] / (1 + e^-gate[r, i]) * up[r, i]  (Shazeer 2020)
struct SwigluParams {
  const float* gate;  // [rows, dim]
  const float* up;    // [rows, dim]
  int64_t rows;       // 0 is allowed
  int64_t dim;
  float* out;  // [rows, dim]; may be gate or up
};
absl::Status Swiglu(Stream& stream, const SwigluParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_SWIGLU_H_
