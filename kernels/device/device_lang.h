#ifndef TIERCEL_KERNELS_DEVICE_DEVICE_LANG_H_
#define TIERCEL_KERNELS_DEVICE_DEVICE_LANG_H_

// All that the source of a kernel may use, beside plain structs and constexpr
// functions. nvcc compiles it for GPUs (cuda_lang.h), other compilers for the
// host executor (host_executor.h), which runs the same source and checks it.
//
// A kernel is a struct. Its members are its parameters, Shared is the memory
// that the threads of a block share, and each thread runs its call operator.
//
//   struct Twice {
//     static constexpr int kMaxThreads = 128;  // most threads of a block
//     static constexpr int kBlocksAtOnce = 4;  // optional: this many blocks
//                                              // fit a processor's registers
//     struct Shared {                          // undefined at first
//       Array<float, 128> x;
//     };
//     float* x;
//     TIERCEL_DEVICE void operator()(const Thread& t, Shared& s) const;
//   };
//   int error = Launch(stream, {.blocks = 7, .threads = 128}, Twice{x});
//
// Functions that threads call together, all of a block or the lanes of `mask`
// in a warp, each of them at the same place of the source:
//
//   Barrier()                          waits for the block; writes before it
//                                      are visible after it
//   WarpBarrier()                      likewise, for the lanes of a whole warp
//   Shuffle(mask, value, lane, width)  another lane's value; ShuffleDown (lanes
//                                      further on), ShuffleXor likewise, lanes
//                                      being counted in groups of `width`
//   Ballot(mask, vote)                 bit i is the vote of lane i
//   MmaS8(sums, a, b)                  by a whole warp: sums[16][8] +=
//                                      a[16][32] b[8][32]^T of int8, exact.
//     With g = lane / 4 and t = lane % 4 a lane holds, four int8 of a word:
//       a     rows g, g + 8, g, g + 8; columns 4 t to 4 t + 3 in the first two
//             words, 16 + 4 t to 16 + 4 t + 3 in the others
//       b     row g, columns 4 t.. and 16 + 4 t..
//       sums  rows g, g, g + 8, g + 8; columns 2 t, 2 t + 1, 2 t, 2 t + 1
//   MmaF16(sums, a, b)                 by a whole warp: sums[16][8] +=
//                                      a[16][16] b[8][16]^T of f16, in f32;
//                                      the order of the sum is the device's.
//     A lane holds two f16 of a word:
//       a     rows g, g + 8, g, g + 8; columns 2 t, 2 t + 1 in the first two
//             words, 2 t + 8, 2 t + 9 in the others
//       b     row g, columns 2 t, 2 t + 1 and 2 t + 8, 2 t + 9
//       sums  as above
//   LoadMatrices(words, row)           by a whole warp: loads four matrices of
//                                      8 x 8 f16 from shared memory. `row` of
//                                      lane 8 m + r is row r of matrix m, 16
//                                      bytes. Word m is the elements (g, 2 t)
//                                      and (g, 2 t + 1) of matrix m
//   LoadTransposed(words, row)         likewise, but word m is the elements
//                                      (2 t, g) and (2 t + 1, g)
//
// Functions that each thread calls by itself:
//
//   AtomicAdd(sum, value)     returns the old value
//   Exp2(x)                   2^x with an error of 2^-22 of it; the device's
//                             bits. 2^-infinity is 0
//   PackHalves(low, high)     two floats, rounded to f16, as a word
//   BytePermute(a, b, places)  byte i is the one that digit i of `places`, in
//                             base 16, names: 0 to 3 of a, 4 to 7 of b
//   FloatOfByte(word, i, offset)  byte i as a float, less an offset; exact
//   Load16(p), Store16(x, p)  loads or stores a Packet
//   CopyAsync16(to, from)     copies 16 bytes of global to shared memory, at
//                             the latest by the wait for the group that the
//                             next CopyCommit() ends
//   CopyWait<n>()             waits for all groups of this thread but the
//                             newest n; copies of other threads have arrived
//                             after their wait and a barrier

#include <bit>

#ifdef __CUDACC__
#include "kernels/device/cuda/cuda_lang.h"
#else
#include "kernels/device/executor/host_executor.h"
#endif

namespace tiercel {

// Faster than a conversion: the byte becomes the last bits of 2^23, whose last
// bit is worth 1.
TIERCEL_DEVICE float FloatOfByte(uint32_t word, int i, float offset) {
  constexpr uint32_t kLarge = 0x4b000000u;  // 2^23
  const auto places = 0x7440u + static_cast<uint32_t>(i);
  return std::bit_cast<float>(BytePermute(word, kLarge, places)) -
         (0x1p23f + offset);
}

// An array that threads share. The executor checks every index.
template <typename T, int kSize>
struct alignas(16) Array {
  TIERCEL_DEVICE T& operator[](int i) {
    CheckIndex(i, kSize);
    return at[i];
  }
  T at[kSize];
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_DEVICE_LANG_H_
