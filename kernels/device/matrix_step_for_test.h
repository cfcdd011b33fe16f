#ifndef TIERCEL_KERNELS_DEVICE_MATRIX_STEP_FOR_TEST_H_
#define TIERCEL_KERNELS_DEVICE_MATRIX_STEP_FOR_TEST_H_

#include <cstdint>

#include "kernels/device/device_ptr.h"

struct CUstream_st;

namespace tiercel {

// A lane's words of one MmaS8, in the layout of device_lang.h.
struct MatrixStepLane {
  int32_t sums[4];
  uint32_t a[4];
  uint32_t b[2];
};

// Queues one step of each of `warps` warps. `lanes` is [warps][32].
// Returns a cudaError_t.
int MatrixSteps(CUstream_st* stream, DevicePtr<MatrixStepLane> lanes,
                int64_t warps);

// sums[16][16] += a[16][16] b[16][16] of f16, for two steps of MmaF16.
struct HalfStepMatrices {
  uint16_t a[16][16];
  uint16_t b[16][16];
  float sums[16][16];
};

// Queues the product of each of `count` problems in the GPU's memory, whose a
// and b pass through LoadMatrices and LoadTransposed. Returns a cudaError_t.
int HalfMatrixSteps(CUstream_st* stream, DevicePtr<HalfStepMatrices> problems,
                    int64_t count);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_MATRIX_STEP_FOR_TEST_H_
