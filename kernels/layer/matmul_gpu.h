#ifndef TIERCEL_KERNELS_LAYER_MATMUL_GPU_H_
#define TIERCEL_KERNELS_LAYER_MATMUL_GPU_H_

#include "absl/status/status.h"
#include "kernels/device/stream.h"
#include "kernels/layer/matmul.h"

namespace tiercel {

// Computes Matmul on a stream of a GPU; `p` is valid. Errors: as Matmul's.
absl::Status MultiplyOnGpu(Stream& stream, const MatmulParams& p);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_LAYER_MATMUL_GPU_H_
