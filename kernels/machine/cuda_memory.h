#ifndef TIERCEL_KERNELS_MACHINE_CUDA_MEMORY_H_
#define TIERCEL_KERNELS_MACHINE_CUDA_MEMORY_H_

#include "kernels/machine/gpu_memory.h"

namespace tiercel {

// The first GPU's own memory, as far as the driver gives any. Free waits until
// the GPU has finished what it was given.
GpuMemory& CudaMemory();

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_CUDA_MEMORY_H_
