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

// The way to a GPU. Its functions are those of the CUDA runtime, by way of the
// module (cuda_queue.cc), or of the host executor, in programs that link it
// (kernels/device/executor/hosted_stream.cc).
struct CudaDriver {
  // Returns true if Open gives the host executor's GPU.
  static bool IsExecutor();
  // Errors: no_device, if the module cannot be opened.
  static absl::StatusOr<GpuFacts> FindGpu(int gpu);
  // Returns a cudaError_t.
  static int Open(int gpu, std::unique_ptr<DeviceQueue>* queue);
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_CUDA_DRIVER_H_
