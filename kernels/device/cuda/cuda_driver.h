#ifndef TIERCEL_KERNELS_DEVICE_CUDA_CUDA_DRIVER_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_CUDA_DRIVER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/queue.h"

namespace tiercel {

// Creates a queue on a GPU, by its number among those that the process sees.
// Errors: those of CheckGpu.
absl::StatusOr<std::unique_ptr<DeviceQueue>> OpenGpu(int gpu = 0);

// The number of GPUs that the process sees; 0 if it is not known.
int CountGpus();

// The CUDA runtime for files compiled without its headers. Its functions are
// those of the GPU (gpu_stream.cc); of the host executor, in programs that link
// it (kernels/device/executor/hosted_stream.cc); or ones that find no GPU.
struct CudaDriver {
  // Returns true if Open gives the host executor's GPU.
  static bool IsExecutor();
  static GpuFacts FindGpu(int gpu);
  // Returns a cudaError_t.
  static int Open(int gpu, std::unique_ptr<DeviceQueue>* queue);
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_CUDA_DRIVER_H_
