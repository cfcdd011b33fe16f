#ifndef TIERCEL_KERNELS_DEVICE_CUDA_CUDA_MEMORY_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_CUDA_MEMORY_H_

#include "kernels/device/cuda/gpu_memory.h"

namespace tiercel {

// A GPU's own memory, without a budget. Free waits until the GPU has finished
// the queued work. GPUs are numbered as the process sees them.
GpuMemory& CudaMemory(int gpu);

// Selects the GPU for the next CUDA calls of the calling thread.
void UseGpu(int gpu);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_CUDA_MEMORY_H_
