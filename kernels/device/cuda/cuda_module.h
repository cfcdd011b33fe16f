#ifndef TIERCEL_KERNELS_DEVICE_CUDA_CUDA_MODULE_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_CUDA_MODULE_H_

#include "absl/status/statusor.h"
#include "kernels/device/cuda/cuda_calls.h"

namespace tiercel {

// Opens a module and returns its contents, which stay until the process ends.
// `file` is a path, or a name that the dynamic linker looks for: beside the
// program and in its installation's lib folder, or in LD_LIBRARY_PATH. Errors:
// no_device, if it cannot be loaded, or is of another build.
absl::StatusOr<const CudaModule*> OpenCudaModule(const char* file);

// Opens this build's module, libtiercel-cuda.so, once in the process, and makes
// its kernels those of this program. A program without one uses no GPU. Errors:
// those of OpenCudaModule.
const absl::StatusOr<const CudaModule*>& OwnCudaModule();

// The functions of that module. It has been opened.
const CudaCalls& Cuda();

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_CUDA_MODULE_H_
