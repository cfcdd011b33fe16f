#include "kernels/device/cuda/cuda_memory.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#include "kernels/device/cuda/cuda_error.h"

namespace tiercel {
namespace {

class OwnMemory final : public GpuMemory {
 public:
  explicit OwnMemory(int gpu) : gpu_(gpu) {}

  absl::Status Copy(DevicePtr<void> to, DevicePtr<const void> from,
                    size_t bytes) override {
    UseGpu(gpu_);
    // cudaMemcpy does not wait for these streams, and a copy within the GPU may
    // only be queued when the call returns. Hence both waits.
    cudaError_t error = cudaDeviceSynchronize();
    if (error == cudaSuccess) {
      error = cudaMemcpy(to.raw(), from.raw(), bytes, cudaMemcpyDeviceToDevice);
    }
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    return CudaStatus("copy", error);
  }

  // An error here is that of earlier work, which Synchronize reports.
  void Free(DevicePtr<std::byte> data, size_t bytes) override {
    Count(-TakenBytes(static_cast<int64_t>(bytes)));
    UseGpu(gpu_);
    cudaFree(data.raw());
  }

  int64_t FreeBytes() override {
    size_t free = 0;
    size_t total = 0;
    UseGpu(gpu_);
    if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
      return static_cast<int64_t>(free);
    }
    cudaGetLastError();
    return 0;
  }

 private:
  int Take(size_t bytes, std::byte** data) override {
    void* taken = nullptr;
    UseGpu(gpu_);
    const cudaError_t error = cudaMalloc(&taken, bytes);
    if (error != cudaSuccess) cudaGetLastError();
    *data = static_cast<std::byte*>(taken);
    return error;
  }

  const int gpu_;
};

}  // namespace

GpuMemory& CudaMemory(int gpu) {
  static std::mutex mutex;
  static std::map<int, OwnMemory> memories;
  const std::lock_guard<std::mutex> lock(mutex);
  return memories.try_emplace(gpu, gpu).first->second;
}

void UseGpu(int gpu) {
  // If the GPU cannot be used, the next call returns the error.
  if (cudaSetDevice(gpu) != cudaSuccess) cudaGetLastError();
}

}  // namespace tiercel
