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

struct CUstream_st;  // what a cudaStream_t points to

namespace tiercel {

// The door to the CUDA runtime for files compiled without its headers: one
// queue of work on one GPU. What is behind it depends on what is linked: a GPU
// (gpu_stream.cc), one that the CPU plays (kernels/device/hosted_stream.cc), or
// nothing, so that it stays shut (kernels/no_cuda.cc). Once the GPU is lost to
// the process every call says so (device_lost).
class CudaStream {
 public:
  // On a GPU, by its number among those that the process sees. Errors: those of
  // CheckGpu.
  static absl::StatusOr<std::unique_ptr<CudaStream>> Create(int gpu = 0);

  // How many GPUs the process sees; 0 where that cannot be told.
  static int Gpus();

  // Whether Create gives no GPU but one that the CPU plays.
  static bool IsPlayed();

  virtual ~CudaStream() = default;

  // Makes the GPU the calling thread's own: its next launch takes the handle.
  virtual CUstream_st* handle() = 0;
  virtual DeviceMemory& memory() = 0;
  virtual int64_t FreeBytes() = 0;  // of the GPU's memory; 0 if it fails
  // Where the GPU is, as "0000:01:00.0"; empty: not known.
  virtual std::string PciBus() = 0;

  // What Stream does by these names. One end of a copy may be in the memory of
  // another GPU: what one may not read of the other goes through the host.
  virtual absl::Status Copy(void* to, const void* from, size_t bytes) = 0;
  virtual absl::Status Zero(void* to, size_t bytes) = 0;
  virtual absl::Status Synchronize() = 0;

  // What is queued so far, to be waited for; from any thread, as Await. Only
  // the newest are told apart: who waits for an older one waits for more.
  virtual uint64_t Mark() = 0;
  // Returns when all that was queued before `mark` (0: nothing) is done, or has
  // failed (device_failed). The thread sleeps, where that of Synchronize may
  // keep a processor busy to be told sooner.
  virtual absl::Status Await(uint64_t mark) = 0;

  // Whether the GPU is there for this process; waits for nothing. Errors:
  // device_lost.
  virtual absl::Status Check() = 0;

  // Lets the GPU copy from and to memory of the host by itself, while the host
  // goes on: `host` is the start of a page. Errors: device_failed.
  virtual absl::Status Pin(std::byte* host, size_t bytes) = 0;
  virtual void Unpin(std::byte* host) = 0;
  // Whether kernels find pinned memory where the host has it.
  virtual bool KernelsSee(std::byte* pinned) = 0;

 private:
  static GpuFacts Look(int gpu);
  // Returns a cudaError_t.
  static int Open(int gpu, std::unique_ptr<CudaStream>* stream);
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_CUDA_STREAM_H_
