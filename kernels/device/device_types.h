#ifndef TIERCEL_KERNELS_DEVICE_DEVICE_TYPES_H_
#define TIERCEL_KERNELS_DEVICE_DEVICE_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#ifdef __CUDACC__
#define TIERCEL_DEVICE __device__ __forceinline__
#else
#define TIERCEL_DEVICE inline
#endif

namespace tiercel {

inline constexpr int kWarpLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;

struct LaunchShape {
  int64_t blocks = 1;
  int threads = 1;  // threads per block
  // The part of Shared that a block gets, from its start on, if the kernel uses
  // no more; 0: all of it.
  size_t shared_bytes = 0;
};

// The launch of a kernel whose blocks go on until no item is left: one block
// for every `per_block` of the items, up to 4,096 blocks. items >= 1.
constexpr LaunchShape TurnsFor(int64_t items, int per_block, int threads) {
  constexpr int64_t kMaxBlocks = 1 << 12;
  const int64_t blocks = (items - 1) / per_block + 1;
  return {.blocks = blocks < kMaxBlocks ? blocks : kMaxBlocks,
          .threads = threads};
}

// The thread that runs a kernel's call operator.
struct Thread {
  int index;  // in its block
  int count;  // threads of a block
  int64_t block;
  int64_t blocks;

  constexpr int lane() const { return index % kWarpLanes; }
  constexpr int warp() const { return index / kWarpLanes; }
};

// 16 bytes that are loaded, stored or copied at once. Their address is a
// multiple of 16.
template <typename T>
struct alignas(16) Packet {
  static constexpr int kSize = 16 / sizeof(T);
  constexpr T& operator[](int i) { return at[i]; }
  constexpr const T& operator[](int i) const { return at[i]; }
  T at[kSize];
};

// Returns true if `p` is aligned for packets.
inline bool IsAligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

// The shared memory that a launch gives each block of `Kernel`.
template <typename Kernel>
constexpr size_t SharedBytes(const LaunchShape& shape) {
  using Shared = typename Kernel::Shared;
  static_assert(std::is_trivially_copyable_v<Kernel> &&
                std::is_trivially_copyable_v<Shared>);
  if (shape.shared_bytes != 0) return shape.shared_bytes;
  return std::is_empty_v<Shared> ? 0 : sizeof(Shared);
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_DEVICE_TYPES_H_
