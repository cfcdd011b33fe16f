#ifndef TIERCEL_KERNELS_MACHINE_CUDA_MEMORY_H_
#define TIERCEL_KERNELS_MACHINE_CUDA_MEMORY_H_

#include "kernels/machine/gpu_memory.h"

namespace tiercel {

// A GPU's own memory, as far as the driver gives any. Free waits until the GPU
// has finished what it was given. GPUs are numbered as the process sees them.
GpuMemory& CudaMemory(int gpu);

// What the calling thread asks of CUDA next is of this GPU.
void UseGpu(int gpu);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_CUDA_MEMORY_H_
