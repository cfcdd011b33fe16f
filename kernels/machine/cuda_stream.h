#ifndef TIERCEL_KERNELS_MACHINE_CUDA_STREAM_H_
#define TIERCEL_KERNELS_MACHINE_CUDA_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
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

  // Whether Create gives no GPU but one that the CPU plays.
  static bool IsPlayed();

  virtual ~CudaStream() = default;

  virtual CUstream_st* handle() = 0;
  virtual DeviceMemory& memory() = 0;
  virtual int64_t FreeBytes() = 0;  // of the GPU's memory; 0 if it fails
  // Where the GPU is, as "0000:01:00.0"; empty: not known.
  virtual std::string PciBus() = 0;

  // What Stream does by these names.
  virtual absl::Status Copy(void* to, const void* from, size_t bytes) = 0;
  virtual absl::Status Zero(void* to, size_t bytes) = 0;
  virtual absl::Status Synchronize() = 0;

  // What is queued so far, to be waited for; from any thread, as Await. Only
  // the newest are told apart: who waits for an older one waits for more.
  virtual uint64_t Mark() = 0;
  // Returns when all that was queued before `mark` (0: nothing) is done, or has
  // failed (device_failed).
  virtual absl::Status Await(uint64_t mark) = 0;

  // Lets the GPU copy from and to memory of the host by itself, while the host
  // goes on, and kernels read it: `host` is the start of a page. Errors:
  // device_failed.
  virtual absl::Status Pin(std::byte* host, size_t bytes) = 0;
  virtual void Unpin(std::byte* host) = 0;
};

// device_failed from a cudaError_t, or OK for cudaSuccess; `who` made the call.
// The runtime forgets the error, unless the device is lost: a later call must
// not answer for an earlier one.
absl::Status CudaStatus(std::string_view who, int error);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_CUDA_STREAM_H_
