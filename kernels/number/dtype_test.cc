#include "kernels/number/dtype.h"

#include <cctype>
#include <string>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

// The elements and bytes of a block in the GGUF format.
struct Expected {
  DType type;
  const char* name;
  int elements;
  int bytes;
};
constexpr Expected kExpected[] = {
    {DType::kF32, "f32", 1, 4},
    {DType::kF16, "f16", 1, 2},
    {DType::kBF16, "bf16", 1, 2},
    {DType::kQ8_0, "q8_0", 32, 2 + 32},
    {DType::kQ4_0, "q4_0", 32, 2 + 16},
    {DType::kQ4_1, "q4_1", 32, 4 + 16},
    {DType::kQ5_0, "q5_0", 32, 2 + 4 + 16},
    {DType::kQ5_1, "q5_1", 32, 4 + 4 + 16},
    {DType::kQ4_K, "q4_K", 256, 4 + 12 + 128},
    {DType::kQ5_K, "q5_K", 256, 4 + 12 + 32 + 128},
    {DType::kQ6_K, "q6_K", 256, 128 + 64 + 16 + 2},
    {DType::kIQ4_NL, "iq4_nl", 32, 2 + 16},
    {DType::kIQ4_XS, "iq4_xs", 256, 2 + 2 + 4 + 128},
    {DType::kMXFP4, "mxfp4", 32, 1 + 16},
    {DType::kQ3_K, "q3_K", 256, 32 + 64 + 12 + 2},
    {DType::kQ2_K, "q2_K", 256, 16 + 64 + 4},
};

TEST(DTypeTest, EveryTypeHasItsBlock) {
  for (const Expected& expected : kExpected) {
    const DTypeInfo& info = InfoOf(expected.type);
    EXPECT_EQ(info.name, expected.name);
    EXPECT_EQ(info.block_elements, expected.elements) << expected.name;
    EXPECT_EQ(info.block_bytes, expected.bytes) << expected.name;
    EXPECT_EQ(RowBytes(expected.type, 512),
              512 / expected.elements * expected.bytes)
        << expected.name;
    EXPECT_EQ(RowBytes(expected.type, 0), 0) << expected.name;
  }
}

TEST(DTypeTest, ParsesNamesInAnyLetterCase) {
  for (const Expected& expected : kExpected) {
    std::string upper = expected.name;
    for (char& c : upper) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(ParseDType(expected.name), expected.type);
    EXPECT_EQ(ParseDType(upper), expected.type);
  }
  for (const char* unknown : {"", "f", "f3", "f322", "q8", "q4_k_m", " f16"}) {
    EXPECT_FALSE(ParseDType(unknown).has_value()) << unknown;
  }
}

TEST(DTypeTest, RowsOfALargeMatrixDoNotOverflow) {
  EXPECT_EQ(RowBytes(DType::kQ8_0, int64_t{1} << 40), (int64_t{1} << 35) * 34);
}

}  // namespace
}  // namespace tiercel
