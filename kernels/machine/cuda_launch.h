#ifndef TIERCEL_KERNELS_MACHINE_CUDA_LAUNCH_H_
#define TIERCEL_KERNELS_MACHINE_CUDA_LAUNCH_H_

// What a kernel's source includes, and all of CUDA that it sees. No Abseil:
// nvcc would read it once per architecture, four times as long as the kernel.

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

#include <type_traits>

namespace tiercel {

struct LaunchShape {
  int64_t blocks = 1;
  int threads = 1;          // of a block
  size_t shared_bytes = 0;  // of a block, beside its fixed ones; at most 48 KiB
};

// Queues kernel(arguments...) in place of <<<>>>. Returns a cudaError_t; what
// fails while the kernel runs shows when the stream is synchronized.
template <typename... Parameters>
int Launch(CUstream_st* stream, const LaunchShape& shape,
           void (*kernel)(Parameters...),
           const std::type_identity_t<Parameters>&... arguments) {
  void* pointers[] = {
      const_cast<void*>(static_cast<const void*>(&arguments))...};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                          dim3(static_cast<unsigned>(shape.blocks)),
                          dim3(static_cast<unsigned>(shape.threads)), pointers,
                          shape.shared_bytes, stream);
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_CUDA_LAUNCH_H_
