#ifndef TIERCEL_KERNELS_NUMBER_REFERENCE_MATH_H_
#define TIERCEL_KERNELS_NUMBER_REFERENCE_MATH_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace tiercel {

// Scalar versions of functions of simd.h, for kernels, and for references that
// a fast body must equal bit for bit (on ISAs whose Fma rounds once).

// Returns e^x / 2^n, where x is near n ln 2.
constexpr float ExpWithout(float n, float x) {
  float r = std::fma(n, -0.693359375f, x);
  r = std::fma(n, 2.12194440e-4f, r);
  float p = 0.00138145697f;
  p = std::fma(p, r, 0.00836873055f);
  p = std::fma(p, r, 0.041668389f);
  p = std::fma(p, r, 0.166665211f);
  p = std::fma(p, r, 0.49999994f);
  p = std::fma(p, r, 1.0f);
  return std::fma(p, r, 1.0f);
}

// The Exp of simd.h.
constexpr float ExpLane(float x) {
  const float clamped = x < -87.0f ? -87.0f : x;
  const float n = std::nearbyint(clamped * 1.44269504f);
  const float p = ExpWithout(n, clamped);
  return std::isnan(p) ? p : std::ldexp(p, static_cast<int>(n));
}

// ExpLane of an x that is NaN or at most 0, with fewer operations: such numbers
// can be rounded by an addition, and no result is subnormal.
constexpr float ExpLaneOfNegative(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: its last bit is worth 1
  const float clamped = x < -87.0f ? -87.0f : x;
  const float rounded = clamped * 1.44269504f + kRound;
  const float n = rounded - kRound;
  const float p = ExpWithout(n, clamped);
  // The factor is 2^n, or any number for NaN.
  return p *
         std::bit_cast<float>((std::bit_cast<uint32_t>(rounded) + 127u) << 23);
}

// The Log of simd.h.
constexpr float LogLane(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
  const auto n = static_cast<float>(exponent);
  const float r =
      std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23)) -
      1.0f;
  float p = -0.0762170702f;
  p = std::fma(p, r, 0.129043832f);
  p = std::fma(p, r, -0.132429928f);
  p = std::fma(p, r, 0.141818345f);
  p = std::fma(p, r, -0.166090831f);
  p = std::fma(p, r, 0.200019732f);
  p = std::fma(p, r, -0.250015825f);
  p = std::fma(p, r, 0.333333254f);
  p = std::fma(p, r, -0.499999881f);
  const float rest = std::fma(r * r, p, n * -2.12194440e-4f);
  return std::fma(n, 0.693359375f, r + rest);
}

// The ReduceAdd of simd.h; overwrites the lanes.
constexpr float SumLanes(float (&lane)[16]) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_NUMBER_REFERENCE_MATH_H_
