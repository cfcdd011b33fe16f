#ifndef TIERCEL_KERNELS_NUMBER_HALF_H_
#define TIERCEL_KERNELS_NUMBER_HALF_H_

#include <bit>
#include <cstdint>
#include <type_traits>

namespace tiercel {

// 16-bit floats are kept as their bits (g++ 12 has no portable type for both).
// Conversions round to nearest, ties to even, and keep NaN a NaN.

constexpr float F32FromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

constexpr uint16_t Bf16FromF32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  }
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// 2^(exponent - 128), which bf16 holds for every exponent.
constexpr uint16_t Bf16OfExponent(uint8_t exponent) {
  return static_cast<uint16_t>(exponent > 1 ? (exponent - 1) << 7
                                            : 0x20 << exponent);
}

constexpr float F32FromF16(uint16_t bits) {
#ifdef __CUDA_ARCH__
  // This is one instruction instead of thirteen, with the same result.
  if (!std::is_constant_evaluated()) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
#endif
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) {  // infinity, NaN
    return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  }
  // Scaling by 2^112 moves the exponent bias, subnormals included.
  const float magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

constexpr uint16_t F16FromF32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (rest >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {  // subnormal: let the adder do the rounding
    const float shifted = std::bit_cast<float>(rest) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = rest + 0xfffu + ((rest >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_NUMBER_HALF_H_
