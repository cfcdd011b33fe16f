#ifndef TIERCEL_KERNELS_LAYER_SWIGLU_H_
#define TIERCEL_KERNELS_LAYER_SWIGLU_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"
#include "kernels/device/kernel_entry.h"
#include "lib/status/status_forward.h"

struct CUstream_st;

namespace tiercel {

class Stream;

// out[r, i] = gate[r, i] / (1 + e^-gate[r, i]) * up[r, i]  (Shazeer 2020)
struct SwigluParams {
  DevicePtr<const float> gate;  // [rows, dim]
  DevicePtr<const float> up;    // [rows, dim]
  int64_t rows;                 // 0 is allowed
  int64_t dim;
  DevicePtr<float> out;  // [rows, dim]; may be gate or up
};
absl::Status Swiglu(Stream& stream, const SwigluParams& p);

// ---- Its bodies ----

// Computes n elements: out = gate / (1 + e^min(-gate, 88)) * up. The bound
// keeps e^x finite; a gate below -88 then leaves under 6.1e-39 of itself.
using SwigluRangeFn = void(const float* gate, const float* up, int64_t n,
                           float* out);

SwigluRangeFn SwigluRangeReference;
namespace portable {
SwigluRangeFn SwigluRange;
}
namespace avx2 {
SwigluRangeFn SwigluRange;
}
namespace avx512 {
SwigluRangeFn SwigluRange;
}
namespace avx512vnni {
SwigluRangeFn SwigluRange;
}

// Queues the work on a GPU's stream, with the same bits. Returns a cudaError_t.
TIERCEL_KERNEL(SwigluCuda, CUstream_st* stream, const float* gate,
               const float* up, int64_t n, float* out);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_SWIGLU_H_
