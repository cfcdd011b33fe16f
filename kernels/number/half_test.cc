#include "kernels/number/half.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The value of f16 bits by the definition of IEEE 754 binary16.
double ValueOfF16(uint32_t bits) {
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>((bits >> 10) & 31u);
  const double fraction = static_cast<double>(bits & 0x3ffu);
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024.0 + fraction, exponent - 25);
}

bool IsNanF16(uint32_t bits) { return (bits & 0x7fffu) > 0x7c00u; }

TEST(F16Test, EveryPatternHasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = F32FromF16(half);
    if (IsNanF16(bits)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(IsNanF16(F16FromF32(value))) << bits;
      continue;
    }
    if ((bits & 0x7fffu) == 0x7c00u) {
      EXPECT_EQ(value, bits == 0x7c00u ? kInf : -kInf);
    } else {
      EXPECT_EQ(static_cast<double>(value), ValueOfF16(bits)) << bits;
      EXPECT_EQ(std::signbit(value), (bits & 0x8000u) != 0) << bits;
    }
    EXPECT_EQ(F16FromF32(value), half) << bits;
  }
}

// Between each pair of neighbours, half-way is rounded to the even one, and the
// floats next to half-way to the nearer one. 65520 is half-way to 2^16.
TEST(F16Test, RoundsToNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7c00u; ++bits) {
    const double lower = ValueOfF16(bits);
    const double upper = bits == 0x7bffu ? 65536.0 : ValueOfF16(bits + 1);
    const auto middle = static_cast<float>((lower + upper) / 2);
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    for (const uint32_t sign : {0u, 0x8000u}) {
      const float s = sign == 0 ? 1.0f : -1.0f;
      EXPECT_EQ(F16FromF32(s * middle), sign | even) << bits;
      EXPECT_EQ(F16FromF32(s * std::nextafter(middle, 0.0f)), sign | bits);
      EXPECT_EQ(F16FromF32(s * std::nextafter(middle, kInf)),
                sign | (bits + 1));
    }
  }
}

TEST(F16Test, Extremes) {
  EXPECT_EQ(F16FromF32(1e-45f), 0u);
  EXPECT_EQ(F16FromF32(-1e-45f), 0x8000u);
  EXPECT_EQ(F16FromF32(std::numeric_limits<float>::max()), 0x7c00u);
  EXPECT_EQ(F16FromF32(kInf), 0x7c00u);
  EXPECT_EQ(F16FromF32(-kInf), 0xfc00u);
}

TEST(Bf16Test, EveryPatternComesBack) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = F32FromBf16(half);
    if ((bits & 0x7fffu) > 0x7f80u) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(F32FromBf16(Bf16FromF32(value)))) << bits;
    } else {
      EXPECT_EQ(Bf16FromF32(value), half) << bits;
    }
  }
}

TEST(Bf16Test, RoundsToNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7f80u; ++bits) {
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    for (const uint32_t sign : {0u, 0x8000u}) {
      const uint32_t middle = (sign | bits) << 16 | 0x8000u;
      EXPECT_EQ(Bf16FromF32(std::bit_cast<float>(middle)), sign | even);
      EXPECT_EQ(Bf16FromF32(std::bit_cast<float>(middle - 1)), sign | bits);
      EXPECT_EQ(Bf16FromF32(std::bit_cast<float>(middle + 1)),
                sign | (bits + 1));
    }
  }
}

// A NaN whose payload is in the lower half must not become an infinity.
TEST(Bf16Test, NanStaysNan) {
  for (uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    const uint16_t half = Bf16FromF32(std::bit_cast<float>(bits));
    EXPECT_TRUE(std::isnan(F32FromBf16(half))) << bits;
  }
}

TEST(HalfTest, EveryExponentIsABf16) {
  for (int exponent = 0; exponent < 256; ++exponent) {
    EXPECT_EQ(F32FromBf16(Bf16OfExponent(static_cast<uint8_t>(exponent))),
              std::ldexp(1.0f, exponent - 128));
  }
}

}  // namespace
}  // namespace tiercel
