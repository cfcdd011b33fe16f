#include "kernels/device/cpu/probe_body.h"
#include "kernels/simd/simd.h"
#include "kernels/simd/simd_int.h"

// Loops over chains are unrolled by hand: chains that are indexed by a variable
// would be in memory, and the probe would measure that. Empty asm statements
// keep compilers from hoisting repeated computations.
namespace tiercel::TIERCEL_ISA_NS {

// The number of chains, which stay in the registers: as many as hide the
// latency of an operation, and no more.
#if defined(__AVX512F__) || !defined(__AVX2__)
constexpr int kFmaChains = kProbeChains;
constexpr int kInt8Chains = kProbeChains;
#else
constexpr int kFmaChains = 6;  // two registers each
constexpr int kInt8Chains = 4;
#endif

float ProbeRead(const float* data, int64_t count) {
  F32x16 sum[4] = {Zero(), Zero(), Zero(), Zero()};
  for (int64_t i = 0; i < count; i += 64) {
    for (int chain = 0; chain < 4; ++chain) {
      sum[chain] = sum[chain] + Load(data + i + 16 * chain);
    }
  }
  return ReduceAdd((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

float ProbeFma(int64_t steps) {
  constexpr int kAtOnce = kFmaChains;
  static_assert(kProbeChains % kAtOnce == 0);
  const F32x16 scale = Set1(0.5f);
  const F32x16 shift = Set1(1.0f);
  F32x16 sum = Zero();
  for (int first = 0; first < kProbeChains; first += kAtOnce) {
    F32x16 chain[kAtOnce];
#pragma GCC unroll 16
    for (int i = 0; i < kAtOnce; ++i) {
      F32x16 start = Set1(static_cast<float>(i));
      asm volatile("" : "+m"(start));
      chain[i] = start;
    }
    for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
      for (int i = 0; i < kAtOnce; ++i) {
        chain[i] = Fma(chain[i], scale, shift);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kAtOnce; ++i) sum = sum + chain[i];
  }
  return ReduceAdd(sum);
}

#if defined(__AVX2__)
using Quads = U8x64;
TIERCEL_INLINE Quads Ones() {
  const int8_t ones[4] = {1, 1, 1, 1};
  return BroadcastQuad(ones);
}
TIERCEL_INLINE I32x16 AddDot(I32x16 sum, Quads codes, Quads x) {
#if defined(__AVX512VNNI__)
  return DotQuads(sum, codes, x);
#else
  return sum + AddNeighbours(DotPairs(codes, x));
#endif
}
// Makes the compiler assume that x may have any value.
TIERCEL_INLINE void Hide(Quads& x) {
#if defined(__AVX512F__)
  asm volatile("" : "+v"(x.v));
#else
  asm volatile("" : "+x"(x.lo), "+x"(x.hi));
#endif
}
#else
using Quads = I32x16;
TIERCEL_INLINE Quads Ones() { return SetI32(1); }
TIERCEL_INLINE void Hide(Quads& x) { asm volatile("" : "+m"(x)); }
TIERCEL_INLINE I32x16 AddDot(I32x16 sum, Quads codes, Quads x) {
  for (int i = 0; i < 4; ++i) sum = sum + codes * x;
  return sum;
}
#endif

float ProbeInt8(int64_t steps) {
  constexpr int kAtOnce = kInt8Chains;
  static_assert(kProbeChains % kAtOnce == 0);
  Quads x = Ones();
  I32x16 sum = SetI32(0);
  for (int first = 0; first < kProbeChains; first += kAtOnce) {
    I32x16 chain[kAtOnce];
#pragma GCC unroll 16
    for (int i = 0; i < kAtOnce; ++i) {
      I32x16 start = SetI32(first + i);
      asm volatile("" : "+m"(start));
      chain[i] = start;
    }
    for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
      for (int i = 0; i < kAtOnce; ++i) {
        Hide(x);
        chain[i] = AddDot(chain[i], x, x);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kAtOnce; ++i) sum = sum + chain[i];
  }
  return static_cast<float>(ReduceAdd(sum));
}

}  // namespace tiercel::TIERCEL_ISA_NS
