#ifndef TIERCEL_KERNELS_MACHINE_CUDA_STREAM_H_
#define TIERCEL_KERNELS_MACHINE_CUDA_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/machine/cuda_error.h"
#include "kernels/machine/device_memory.h"

struct CUstream_st;  // a cudaStream_t points to it

namespace tiercel {

// The interface to the CUDA runtime for files compiled without its headers: one
// queue of work on one GPU. The implementation depends on what is linked: a GPU
// (gpu_stream.cc), one that the CPU simulates
// (kernels/device/hosted_stream.cc), or one that always fails
// (kernels/no_cuda.cc). Once the process has lost the GPU, every call returns
// device_lost.
class CudaStream {
 public:
  // Creates a queue on a GPU, by its number among those that the process sees.
  // Errors: those of CheckGpu.
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create(int gpu = 0);

  // The number of GPUs that the process sees; 0 if it is not known.
  static int Gpus();

  // Returns true if Create gives a simulated GPU.
  static bool IsSimulated();

  virtual ~CudaStream() = default;

  // Also selects the GPU for the calling thread's next launch, which takes the
  // handle.
  virtual CUstream_st* handle() = 0;
  virtual DeviceMemory& memory() = 0;
  virtual int64_t FreeBytes() = 0;  // free memory of the GPU; 0 if it fails
  // The GPU's PCI address, as "0000:01:00.0"; empty: not known.
  virtual std::string PciBus() = 0;

  // These do the same as in Stream. One end of a copy may be in the memory of
  // another GPU: the copy goes through the host if one may not read the other.
  virtual absl::Status Copy(void* to, const void* from, size_t bytes) = 0;
  virtual absl::Status Zero(void* to, size_t bytes) = 0;
  virtual absl::Status Synchronize() = 0;

  // Marks the end of the queue, for Await. Both may be called by any thread.
  // Only the newest marks are kept: Await waits for more than an older one.
  virtual uint64_t Mark() = 0;
  // Returns when all that was queued before `mark` (0: nothing) is done, or has
  // failed (device_failed). The thread sleeps, while Synchronize may keep a
  // processor busy to return sooner.
  virtual absl::Status Await(uint64_t mark) = 0;

  // Checks that this process can still use the GPU, without waiting. Errors:
  // device_lost.
  virtual absl::Status Check() = 0;

  // Lets the GPU copy from and to memory of the host by itself, while the host
  // continues. `host` is the start of a page. Errors: device_failed.
  virtual absl::Status Pin(std::byte* host, size_t bytes) = 0;
  virtual void Unpin(std::byte* host) = 0;
  // Returns true if kernels can read pinned memory at the host's address.
  virtual bool KernelsSee(std::byte* pinned) = 0;

 private:
  static GpuFacts FindGpu(int gpu);
  // Returns a cudaError_t.
  static int Open(int gpu, std::unique_ptr<CudaStream>* stream);
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_CUDA_STREAM_H_
