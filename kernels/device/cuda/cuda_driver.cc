#include "kernels/device/cuda/cuda_driver.h"

#include <string>

#include "kernels/device/copies.h"
#include "kernels/system/no_signals.h"
#include "lib/status/status_macros.h"

namespace tiercel {

#ifndef TIERCEL_CUDA
// A build without CUDA has no GPU. The host executor's functions take the place
// of these where it is linked.
[[gnu::weak]] bool CudaDriver::IsExecutor() { return false; }
[[gnu::weak]] GpuFacts CudaDriver::FindGpu(int /*gpu*/) {
  return {.runtime = 0};
}
[[gnu::weak]] int CudaDriver::Open(int /*gpu*/,
                                   std::unique_ptr<DeviceQueue>* /*queue*/) {
  return kCudaNoDevice;
}
[[gnu::weak]] std::string CudaErrorText(int /*error*/) {
  return "this build has no CUDA support";
}
#endif

// A driver starts threads of its own at its first call, hence NoSignals here.

int CountGpus() {
  const NoSignals no_signals;
  const GpuFacts facts = CudaDriver::FindGpu(0);
  return facts.error == kCudaSuccess ? facts.gpus : 0;
}

absl::StatusOr<std::unique_ptr<DeviceQueue>> OpenGpu(int gpu) {
  const NoSignals no_signals;
  GpuFacts facts = CudaDriver::FindGpu(gpu);
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
