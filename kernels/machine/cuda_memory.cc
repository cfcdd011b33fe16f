#include "kernels/machine/cuda_memory.h"

#include <cuda_runtime_api.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"
#include "kernels/machine/cuda_stream.h"

namespace tiercel {
namespace {

class GpuMemory final : public DeviceMemory {
 public:
  absl::StatusOr<std::byte*> Allocate(size_t bytes,
                                      std::string_view what) override {
    void* data = nullptr;
    const cudaError_t error = cudaMalloc(&data, bytes);
    if (error == cudaSuccess) {
      Count(AlignedBytes(static_cast<int64_t>(bytes)));
      return static_cast<std::byte*>(data);
    }
    absl::Status status = CudaStatus(what, error);
    if (error != cudaErrorMemoryAllocation) return status;
    size_t free = 0;
    size_t total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) return status;
    return MemoryError(
        "out_of_memory",
        absl::StrCat(std::string(what), ": need ", bytes,
                     " bytes, the GPU has ", free, " of ", total, " free"));
  }

  absl::Status Copy(std::byte* to, const std::byte* from,
                    size_t bytes) override {
    // Streams are not waited for, and between two places of the GPU the copy is
    // only queued when its call returns.
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess) {
      error = cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
    }
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    return CudaStatus("copy", error);
  }

  // A failure here is that of earlier work, which Synchronize reports.
  void Free(std::byte* data, size_t bytes) override {
    Count(-AlignedBytes(static_cast<int64_t>(bytes)));
    cudaFree(data);
  }
};

}  // namespace

DeviceMemory& CudaMemory() {
  static GpuMemory memory;
  return memory;
}

}  // namespace tiercel
