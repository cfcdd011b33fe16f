#ifndef TIERCEL_KERNELS_LAYER_SWIGLU_BODY_H_
#define TIERCEL_KERNELS_LAYER_SWIGLU_BODY_H_

#include <cstdint>

#include "kernels/device/kernel_entry.h"

struct CUstream_st;

namespace tiercel {

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
TIERCEL_KERNEL int SwigluCuda(CUstream_st* stream, const float* gate,
                              const float* up, int64_t n, float* out);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_SWIGLU_BODY_H_
