#include "kernels/machine/cuda_memory.h"

#include <cuda_runtime_api.h>

#include "kernels/machine/cuda_error.h"

namespace tiercel {
namespace {

class OwnMemory final : public GpuMemory {
 public:
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

  int64_t FreeBytes() override {
    size_t free = 0;
    size_t total = 0;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
      return static_cast<int64_t>(free);
    }
    cudaGetLastError();
    return 0;
  }

 private:
  int Take(size_t bytes, std::byte** data) override {
    void* taken = nullptr;
    const cudaError_t error = cudaMalloc(&taken, bytes);
    if (error != cudaSuccess) cudaGetLastError();
    *data = static_cast<std::byte*>(taken);
    return error;
  }
};

}  // namespace

GpuMemory& CudaMemory() {
  static OwnMemory memory;
  return memory;
}

}  // namespace tiercel
