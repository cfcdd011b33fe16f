#include "kernels/number/reference_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }

// Arguments are zeros, subnormal numbers, -infinity and all between, some of
// each exponent.
TEST(ReferenceMathTest, ExpOfNegativeHasTheBitsOfExp) {
  const float most = -std::numeric_limits<float>::infinity();
  ASSERT_EQ(Bits(ExpLaneOfNegative(0.0f)), Bits(ExpLane(0.0f)));
  ASSERT_EQ(Bits(ExpLaneOfNegative(most)), Bits(ExpLane(most)));
  for (uint32_t bits = Bits(-0.0f); bits < Bits(most); bits += 1021) {
    const auto x = std::bit_cast<float>(bits);
    ASSERT_EQ(Bits(ExpLaneOfNegative(x)), Bits(ExpLane(x))) << x;
  }
}

// Arguments are around multiples of ln 2 / 2, where the power of two changes,
// and around -87, below which all results are the same.
TEST(ReferenceMathTest, ExpOfNegativeRoundsAsExp) {
  for (int i = 0; i <= 252; ++i) {
    const float middle = static_cast<float>(i) * -0.34657359f;
    for (uint32_t j = 0; j < 64; ++j) {
      const auto x = std::bit_cast<float>(Bits(middle) + j - (i > 0 ? 32 : 0));
      ASSERT_EQ(Bits(ExpLaneOfNegative(x)), Bits(ExpLane(x))) << x;
    }
  }
}

TEST(ReferenceMathTest, ExpOfNaNIsNaN) {
  for (uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0x7f800001u}) {
    EXPECT_TRUE(std::isnan(ExpLaneOfNegative(std::bit_cast<float>(bits))));
  }
}

}  // namespace
}  // namespace tiercel
