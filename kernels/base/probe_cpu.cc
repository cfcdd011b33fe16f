#include "kernels/base/probe_body.h"
#include "kernels/base/simd.h"
#include "kernels/base/simd_int.h"

// Loops over chains are unrolled by hand: a chain that an index picks lives in
// memory, and the probe would measure that.
namespace tiercel::TIERCEL_ISA_NS {

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
  F32x16 chain[kProbeChains];
#pragma GCC unroll 16
  for (int i = 0; i < kProbeChains; ++i) {
    chain[i] = Set1(static_cast<float>(i));
  }
  const F32x16 scale = Set1(0.5f);
  const F32x16 shift = Set1(1.0f);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kProbeChains; ++i) {
      chain[i] = Fma(chain[i], scale, shift);
    }
  }
  F32x16 sum = Zero();
#pragma GCC unroll 16
  for (int i = 0; i < kProbeChains; ++i) sum = sum + chain[i];
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
#else
using Quads = I32x16;
TIERCEL_INLINE Quads Ones() { return SetI32(1); }
TIERCEL_INLINE I32x16 AddDot(I32x16 sum, Quads codes, Quads x) {
  for (int i = 0; i < 4; ++i) sum = sum + codes * x;
  return sum;
}
#endif

float ProbeInt8(int64_t steps) {
  // In memory, and the loop a barrier: the products are not constants.
  Quads x = Ones();
  asm volatile("" : "+m"(x));
  I32x16 chain[kProbeChains];
#pragma GCC unroll 16
  for (int i = 0; i < kProbeChains; ++i) chain[i] = SetI32(i);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kProbeChains; ++i) chain[i] = AddDot(chain[i], x, x);
    asm volatile("" : "+m"(x));
  }
  I32x16 sum = SetI32(0);
#pragma GCC unroll 16
  for (int i = 0; i < kProbeChains; ++i) sum = sum + chain[i];
  return static_cast<float>(ReduceAdd(sum));
}

}  // namespace tiercel::TIERCEL_ISA_NS
