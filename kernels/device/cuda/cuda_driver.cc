#include "kernels/device/cuda/cuda_driver.h"

#include <utility>

#include "kernels/device/copies.h"
#include "kernels/system/no_signals.h"
#include "lib/status/status_macros.h"

namespace tiercel {

// A driver starts threads of its own at its first call, hence NoSignals here.

int CountGpus() {
  const NoSignals no_signals;
  const absl::StatusOr<GpuFacts> facts = CudaDriver::FindGpu(0);
  return facts.ok() && facts->error == kCudaSuccess ? facts->gpus : 0;
}

absl::StatusOr<std::unique_ptr<DeviceQueue>> OpenGpu(int gpu) {
  const NoSignals no_signals;
  ASSIGN_OR_RETURN(GpuFacts facts, CudaDriver::FindGpu(gpu));
  RETURN_IF_ERROR(CheckGpu(facts));
  std::unique_ptr<DeviceQueue> queue;
  facts.error = CudaDriver::Open(gpu, &queue);
  RETURN_IF_ERROR(CheckGpu(facts));
  // A kernel that does nothing shows whether the build has any for the GPU.
  facts.error = CopyWordsCuda(queue->handle(), nullptr, 0, nullptr);
  RETURN_IF_ERROR(CheckGpu(facts));
  return queue;
}

}  // namespace tiercel
