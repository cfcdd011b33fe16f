#ifndef TIERCEL_KERNELS_SIMD_SIMD_TEST_BODY_H_
#define TIERCEL_KERNELS_SIMD_SIMD_TEST_BODY_H_

#include <cstdint>

namespace tiercel {

// The operations of simd.h, callable from code that is compiled for any ISA.
enum class SimdOp {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFma,  // a * b + c
  kMax,
  kMin,
  kAbs,
  kSqrt,
  kRound,
  kScaleByPowerOf2,  // a * 2^b
  kExp,
  kLog,
  kLoadN,   // n lanes of a
  kStoreN,  // n lanes of a
  kReduceAdd,
  kReduceMax,
  kTranspose,  // a as 16 rows
  kLoadF16,
  kSet1F16,  // converts half[0]
  kStoreF16,
  kLoadBf16,
  kLoadI8,
  kLoadU8,
  kLoadI4,      // the low four bits
  kLoadI4High,  // the high four bits
};

struct SimdLanes {
  float a[256];
  float b[16];
  float c[16];
  uint16_t half[16];
  int8_t i8[16];
  uint8_t u8[16];
  int n;

  float out[256];  // reductions: out[0]
  uint16_t half_out[16];
};
using RunSimdFn = void(SimdOp op, SimdLanes* lanes);

namespace portable {
RunSimdFn RunSimd;
}
namespace avx2 {
RunSimdFn RunSimd;
}
namespace avx512 {
RunSimdFn RunSimd;
}
namespace avx512vnni {
RunSimdFn RunSimd;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SIMD_SIMD_TEST_BODY_H_
