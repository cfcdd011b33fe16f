#ifndef TIERCEL_KERNELS_MACHINE_GPU_MEMORY_H_
#define TIERCEL_KERNELS_MACHINE_GPU_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/machine/device_memory.h"

namespace tiercel {

// A GPU's memory, which other processes take of too. What one of them held may
// be there a moment later: what is short is asked for once more before it is an
// error.
class GpuMemory : public DeviceMemory {
 public:
  // Errors: out_of_memory; device_failed; device_lost.
  absl::StatusOr<std::byte*> Allocate(size_t bytes,
                                      std::string_view what) final;

  // What no process has taken; 0 where it cannot be told.
  virtual int64_t FreeBytes() = 0;

 private:
  // Returns a cudaError_t.
  virtual int Take(size_t bytes, std::byte** data) = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_GPU_MEMORY_H_
