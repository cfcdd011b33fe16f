#include "kernels/number/philox.h"

#include "gtest/gtest.h"

namespace tiercel {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers published with the paper's Random123 library.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, 0),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                   0xffffffffffffffffull),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   0x299f31d0a4093822ull),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, UniformNeverReachesAnEnd) {
  EXPECT_GT(OpenUniform(0), 0.0);
  EXPECT_LT(OpenUniform(0xffffffffu), 1.0);
}

}  // namespace
}  // namespace tiercel
