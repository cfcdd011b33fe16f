#include "kernels/device/cuda/cuda_memory.h"

#include <map>
#include <mutex>

#include "kernels/device/cuda/cuda_error.h"
#include "kernels/device/cuda/cuda_module.h"

namespace tiercel {
namespace {

class OwnMemory final : public GpuMemory {
 public:
  explicit OwnMemory(int gpu) : gpu_(gpu) {}

  absl::Status Copy(DevicePtr<void> to, DevicePtr<const void> from,
                    size_t bytes) override {
    UseGpu(gpu_);
    // The copy does not wait for queued work, and may only be queued when the
    // call returns. Hence both waits.
    int error = Cuda().wait_for_gpu();
    if (error == kCudaSuccess) {
      error = Cuda().copy(to.raw(), from.raw(), bytes);
    }
    if (error == kCudaSuccess) error = Cuda().wait_for_gpu();
    return CudaStatus("copy", error);
  }

  // An error here is that of earlier work, which Synchronize reports.
  void Free(DevicePtr<std::byte> data, size_t bytes) override {
    Count(-TakenBytes(static_cast<int64_t>(bytes)));
    UseGpu(gpu_);
    Cuda().release(data.raw());
  }

  int64_t FreeBytes() override {
    size_t free = 0;
    size_t total = 0;
    UseGpu(gpu_);
    if (Cuda().memory(&free, &total) == kCudaSuccess) {
      return static_cast<int64_t>(free);
    }
    Cuda().clear_error();
    return 0;
  }

 private:
  int Take(size_t bytes, std::byte** data) override {
    void* taken = nullptr;
    UseGpu(gpu_);
    const int error = Cuda().allocate(&taken, bytes);
    if (error != kCudaSuccess) Cuda().clear_error();
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
  if (Cuda().use_gpu(gpu) != kCudaSuccess) Cuda().clear_error();
}

}  // namespace tiercel
