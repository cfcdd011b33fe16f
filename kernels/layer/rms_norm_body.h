#ifndef TIERCEL_KERNELS_LAYER_RMS_NORM_BODY_H_
#define TIERCEL_KERNELS_LAYER_RMS_NORM_BODY_H_

#include "kernels/device/kernel_entry.h"

struct CUstream_st;

namespace tiercel {

struct RmsNormParams;

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
TIERCEL_KERNEL int RmsNormCuda(CUstream_st* stream, const RmsNormParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_RMS_NORM_BODY_H_
