#include "kernels/device/cuda/gpu_memory.h"

#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_error.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

// About the time in which a process ends.
constexpr auto kMoment = std::chrono::milliseconds(100);

}  // namespace

int64_t GpuMemory::TakenBytes(int64_t bytes) const {
  if (bytes <= kBlockBytes / 2) return AlignedBytes(bytes);
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

absl::StatusOr<DevicePtr<std::byte>> GpuMemory::Allocate(
    size_t bytes, std::string_view what) {
  std::byte* data = nullptr;
  int error = Take(bytes, &data);
  if (error == kCudaOutOfMemory) {
    std::this_thread::sleep_for(kMoment);
    error = Take(bytes, &data);
  }
  if (error == kCudaOutOfMemory) {
    return MemoryError(
        "out_of_memory",
        absl::StrCat(std::string(what), ": need ", bytes,
                     " bytes, the GPU has ", FreeBytes(), " free"));
  }
  if (error != kCudaSuccess) return CudaStatus(what, error);
  Count(TakenBytes(static_cast<int64_t>(bytes)));
  return DevicePtr(data);
}

}  // namespace tiercel
