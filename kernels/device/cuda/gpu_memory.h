#ifndef TIERCEL_KERNELS_DEVICE_CUDA_GPU_MEMORY_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_GPU_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/device/device_memory.h"

namespace tiercel {

// A GPU's memory, which other processes use too. One of them may free some a
// moment later, so Allocate tries twice before it returns out_of_memory.
//
// The driver gives out whole blocks of kBlockBytes. It divides one among
// requests of at most half of that, so these count as they are; a larger one
// has blocks of its own. (kernel_bench measures what requests take.)
class GpuMemory : public DeviceMemory {
 public:
  static constexpr int64_t kBlockBytes = int64_t{2} << 20;

  int64_t TakenBytes(int64_t bytes) const override;

  // Errors: out_of_memory; device_failed; device_lost.
  absl::StatusOr<DevicePtr<std::byte>> Allocate(size_t bytes,
                                                std::string_view what) final;

  // The bytes that no process has taken; 0 if they are not known.
  virtual int64_t FreeBytes() = 0;

 private:
  // Returns a cudaError_t.
  virtual int Take(size_t bytes, std::byte** data) = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_GPU_MEMORY_H_
