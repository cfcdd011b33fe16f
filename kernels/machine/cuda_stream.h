#ifndef TIERCEL_KERNELS_MACHINE_CUDA_STREAM_H_
#define TIERCEL_KERNELS_MACHINE_CUDA_STREAM_H_

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"

struct CUstream_st;  // what a cudaStream_t points to

namespace tiercel {

// The door to the CUDA runtime for files compiled without its headers: one
// queue of work on one GPU. Tests put their own in its place. A build without
// CUDA has a door that stays shut (kernels/no_cuda.cc).
class CudaStream {
 public:
  // On the first GPU the process sees. Errors: no_device, with what is missing:
  // CUDA in this build, a driver, a newer driver, a GPU, or one of compute
  // capability 7.5 or later.
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create();

  virtual ~CudaStream() = default;

  virtual CUstream_st* handle() = 0;
  virtual DeviceMemory& memory() = 0;
  virtual int64_t FreeBytes() = 0;  // of the GPU's memory; 0 if it fails

  // What Stream does by these names.
  virtual absl::Status Copy(void* to, const void* from, size_t bytes) = 0;
  virtual absl::Status Zero(void* to, size_t bytes) = 0;
  virtual absl::Status Synchronize() = 0;
};

// device_failed from a cudaError_t, or OK for cudaSuccess; `who` made the call.
// The runtime forgets the error, unless the device is lost: a later call must
// not answer for an earlier one.
absl::Status CudaStatus(std::string_view who, int error);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_CUDA_STREAM_H_
