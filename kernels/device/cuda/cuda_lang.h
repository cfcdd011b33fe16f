#ifndef TIERCEL_KERNELS_DEVICE_CUDA_CUDA_LANG_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_CUDA_LANG_H_

// The functions of device_lang.h for GPUs; included by it. Abseil is not used:
// nvcc would read it once per architecture, in four times the time of a kernel.

#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/device/device_types.h"

namespace tiercel {

// The shared memory of a multiprocessor of the kind that is compiled for.
#ifndef __CUDA_ARCH__
inline constexpr int kSharedBytes = 0;  // the host's pass
#elif __CUDA_ARCH__ == 750
inline constexpr int kSharedBytes = 64 << 10;
#elif __CUDA_ARCH__ == 800
inline constexpr int kSharedBytes = 164 << 10;
#elif __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
inline constexpr int kSharedBytes = 228 << 10;
#else
inline constexpr int kSharedBytes = 100 << 10;
#endif

// The kernel's kBlocksAtOnce, but no more than have room in shared memory: the
// registers of others would be kept free in vain. 0: the compiler decides.
template <typename Kernel>
constexpr int BlocksAtOnce() {
  if constexpr (requires { Kernel::kBlocksAtOnce; }) {
    constexpr int kReserved = 1 << 10;  // by the driver, in each block
    constexpr int kBytes = sizeof(typename Kernel::Shared) + kReserved;
    constexpr int kRoom = kSharedBytes / kBytes;
    return kRoom > 0 && kRoom < Kernel::kBlocksAtOnce ? kRoom
                                                      : Kernel::kBlocksAtOnce;
  } else {
    return 0;
  }
}

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::kMaxThreads, BlocksAtOnce<Kernel>())
    RunKernel(const Kernel kernel) {
  extern __shared__ __align__(16) unsigned char shared[];
  kernel({static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x),
          blockIdx.x, gridDim.x},
         *reinterpret_cast<typename Kernel::Shared*>(shared));
}

// Queues a kernel. Returns a cudaError_t. An error while the kernel runs is
// returned when the stream is synchronized.
template <typename Kernel>
int Launch(CUstream_st* stream, const LaunchShape& shape,
           const Kernel& kernel) {
  constexpr size_t kUnasked = 48 << 10;  // more shared memory must be requested
  const auto* run = reinterpret_cast<const void*>(RunKernel<Kernel>);
  const size_t bytes = SharedBytes<Kernel>(shape);
  if (bytes > kUnasked) {
    const cudaError_t error =
        cudaFuncSetAttribute(run, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes));
    if (error != cudaSuccess) return error;
  }
  void* arguments[] = {const_cast<Kernel*>(&kernel)};
  return cudaLaunchKernel(run, dim3(static_cast<unsigned>(shape.blocks)),
                          dim3(static_cast<unsigned>(shape.threads)), arguments,
                          bytes, stream);
}

TIERCEL_DEVICE void CheckIndex(int, int) {}

TIERCEL_DEVICE void Barrier() { __syncthreads(); }
TIERCEL_DEVICE void WarpBarrier() { __syncwarp(); }

template <typename T>
TIERCEL_DEVICE T Shuffle(uint32_t mask, T value, int lane,
                         int width = kWarpLanes) {
  return __shfl_sync(mask, value, lane, width);
}
template <typename T>
TIERCEL_DEVICE T ShuffleDown(uint32_t mask, T value, int lanes,
                             int width = kWarpLanes) {
  return __shfl_down_sync(mask, value, static_cast<unsigned>(lanes), width);
}
template <typename T>
TIERCEL_DEVICE T ShuffleXor(uint32_t mask, T value, int bits,
                            int width = kWarpLanes) {
  return __shfl_xor_sync(mask, value, bits, width);
}
TIERCEL_DEVICE uint32_t Ballot(uint32_t mask, bool vote) {
  return __ballot_sync(mask, vote);
}

TIERCEL_DEVICE void MmaS8(int32_t (&sums)[4], const uint32_t (&a)[4],
                          const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else  // Turing multiplies a quarter of it at a time.
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 "
        "{%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(sums[i % 2 * 2]), "+r"(sums[i % 2 * 2 + 1])
        : "r"(a[i]), "r"(b[i / 2]));
  }
#endif
}

TIERCEL_DEVICE void MmaF16(float (&sums)[4], const uint32_t (&a)[4],
                           const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else  // Turing multiplies a half of it at a time.
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
  }
#endif
}

TIERCEL_DEVICE void LoadMatrices(uint32_t (&words)[4], const void* row) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
      : "r"(shared)
      : "memory");
}
TIERCEL_DEVICE void LoadTransposed(uint32_t (&words)[4], const void* row) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
      : "r"(shared)
      : "memory");
}

TIERCEL_DEVICE float Exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

TIERCEL_DEVICE uint32_t PackHalves(float low, float high) {
#if __CUDA_ARCH__ >= 800
  uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  uint16_t halves[2];
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(halves[0]) : "f"(low));
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(halves[1]) : "f"(high));
  return static_cast<uint32_t>(halves[1]) << 16 | halves[0];
#endif
}

TIERCEL_DEVICE uint32_t AtomicAdd(uint32_t* sum, uint32_t value) {
  return atomicAdd(sum, value);
}

TIERCEL_DEVICE uint32_t BytePermute(uint32_t a, uint32_t b, uint32_t places) {
  return __byte_perm(a, b, places);
}

template <typename T>
TIERCEL_DEVICE Packet<T> Load16(const T* from) {
  return *reinterpret_cast<const Packet<T>*>(from);
}
template <typename T>
TIERCEL_DEVICE void Store16(const Packet<T>& packet, T* to) {
  *reinterpret_cast<Packet<T>*>(to) = packet;
}

// On Turing the copy is synchronous.
TIERCEL_DEVICE void CopyAsync16(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared),
               "l"(from)
               : "memory");
#else
  // nvcc does not always recognise this as global memory.
  uint4 packet;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(packet.x), "=r"(packet.y), "=r"(packet.z), "=r"(packet.w)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  *static_cast<uint4*>(to) = packet;
#endif
}
TIERCEL_DEVICE void CopyCommit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int kPending>
TIERCEL_DEVICE void CopyWait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_CUDA_LANG_H_
