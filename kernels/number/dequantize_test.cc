#include "kernels/number/dequantize.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"

namespace tiercel {
namespace {

// A block of zero bytes of which a few are set, and its values.
class Block {
 public:
  explicit Block(DType type)
      : type_(type), bytes_(static_cast<size_t>(InfoOf(type).block_bytes)) {}

  Block& Byte(size_t at, int value) {
    bytes_[at] = static_cast<std::byte>(value);
    return *this;
  }
  Block& Half(size_t at, float value) {
    const uint16_t bits = F16FromF32(value);
    std::memcpy(&bytes_[at], &bits, sizeof(bits));
    return *this;
  }
  std::vector<float> Values() const {
    const auto elements = static_cast<size_t>(InfoOf(type_).block_elements);
    std::vector<float> out(elements, kPoison);
    Dequantize(type_, bytes_.data(), InfoOf(type_).block_elements, out.data());
    return out;
  }

 private:
  DType type_;
  std::vector<std::byte> bytes_;
};

std::vector<float> Filled(size_t n, float value) {
  return std::vector<float>(n, value);
}

TEST(DequantizeTest, Q8_0IsScaleTimesSignedByte) {
  std::vector<float> expected = Filled(32, 0.0f);
  expected[0] = -64.0f;
  expected[31] = 63.5f;
  EXPECT_EQ(
      Block(DType::kQ8_0).Half(0, 0.5f).Byte(2, 0x80).Byte(33, 127).Values(),
      expected);
}

TEST(DequantizeTest, Q4_0LowNibblesAreTheFirstHalf) {
  std::vector<float> expected = Filled(32, -16.0f);
  expected[1] = 14.0f;   // nibble 15
  expected[17] = -2.0f;  // nibble 7
  EXPECT_EQ(Block(DType::kQ4_0).Half(0, 2.0f).Byte(3, 0x7f).Values(), expected);
}

TEST(DequantizeTest, Q4_1AddsItsMinimum) {
  std::vector<float> expected = Filled(32, -3.0f);
  expected[15] = -3.0f + 9 * 0.25f;
  expected[31] = -3.0f + 4 * 0.25f;
  EXPECT_EQ(
      Block(DType::kQ4_1).Half(0, 0.25f).Half(2, -3.0f).Byte(19, 0x49).Values(),
      expected);
}

TEST(DequantizeTest, Q5_0FifthBitsComeFromOneWord) {
  std::vector<float> expected = Filled(32, -16.0f);
  expected[2] = 1.0f;     // 16 + 1
  expected[18] = -14.0f;  // 2
  expected[31] = 0.0f;    // 16
  EXPECT_EQ(Block(DType::kQ5_0)
                .Half(0, 1.0f)
                .Byte(2, 0x04)
                .Byte(5, 0x80)
                .Byte(8, 0x21)
                .Values(),
            expected);
}

TEST(DequantizeTest, Q5_1) {
  std::vector<float> expected = Filled(32, 1.0f);
  expected[8] = 1.0f + 31 * 0.5f;
  expected[24] = 1.0f + 3 * 0.5f;
  EXPECT_EQ(Block(DType::kQ5_1)
                .Half(0, 0.5f)
                .Half(2, 1.0f)
                .Byte(5, 0x01)
                .Byte(16, 0x3f)
                .Values(),
            expected);
}

// Scales and minimums 0 to 3 are the low six bits of a byte each; 4 to 7 are
// nibbles, with two bits from the top of the first eight bytes.
Block& SixBitScales(Block& block) {
  return block
      .Byte(4, 0x40 | 5)  // scale 0 = 5; two top bits of scale 4 = 1
      .Byte(9, 0x80 | 7)  // min 1 = 7; two top bits of min 5 = 2
      .Byte(12, 0x03)     // low nibble of scale 4 = 3
      .Byte(13, 0x90);    // low nibble of min 5 = 9
}

TEST(DequantizeTest, Q4_KSubBlocksAlternateBetweenNibbles) {
  Block block(DType::kQ4_K);
  SixBitScales(block).Half(0, 0.5f).Half(2, 0.25f);
  block.Byte(16, 0x4b);       // weight 0: 11; weight 32: 4, whose scale is 0
  block.Byte(16 + 64, 0x0c);  // weight 128: 12
  std::vector<float> expected = Filled(256, 0.0f);
  for (size_t i = 32; i < 64; ++i) expected[i] = -7 * 0.25f;
  for (size_t i = 160; i < 192; ++i) expected[i] = -(2 * 16 + 9) * 0.25f;
  expected[0] = 0.5f * 5 * 11;
  expected[128] = 0.5f * (1 * 16 + 3) * 12;
  EXPECT_EQ(block.Values(), expected);
}

TEST(DequantizeTest, Q5_KFifthBitIsTheSubBlocksBit) {
  Block block(DType::kQ5_K);
  SixBitScales(block).Half(0, 0.5f).Half(2, 0.0f);
  block.Byte(16 + 31, 0x11);       // the fifth bit of weights 31 and 128 + 31
  block.Byte(48 + 31, 0x0b);       // weight 31
  block.Byte(48 + 64 + 31, 0x0c);  // weight 159
  std::vector<float> expected = Filled(256, 0.0f);
  expected[31] = 0.5f * 5 * 27;
  expected[159] = 0.5f * 19 * 28;
  EXPECT_EQ(block.Values(), expected);
}

TEST(DequantizeTest, Q6_KFourQuartersShareTheirHighBits) {
  Block block(DType::kQ6_K);
  block.Half(208, 0.5f);
  const int scales[] = {1, -2, 3,  127, -128, 6,  7,  8,
                        9, 10, 11, 12,  13,   14, 15, 16};
  std::vector<float> expected(256);
  for (size_t i = 0; i < 16; ++i) {
    block.Byte(192 + i, scales[i]);
    for (size_t j = 0; j < 16; ++j) {
      expected[16 * i + j] = 0.5f * static_cast<float>(scales[i]) * -32;
    }
  }
  block.Byte(64 + 33, 0xe5);       // low bits of 128 + 33: 5; 128 + 97: 14
  block.Byte(128 + 32 + 1, 0x8c);  // high bits of 128 + 1, 33, 65, 97: 0 3 0 2
  expected[128 + 33] = 0.5f * 11 * (5 + 48 - 32);
  expected[128 + 97] = 0.5f * 15 * (14 + 32 - 32);
  EXPECT_EQ(block.Values(), expected);
}

// The numbers of the 16 codes, and the order of nibbles.
TEST(DequantizeTest, IQ4_NLCodesArePlacesInABook) {
  const int numbers[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                         1,    13,   25,  38,  53,  69,  89,  113};
  Block block(DType::kIQ4_NL);
  block.Half(0, 0.5f);
  std::vector<float> expected(32);
  for (int i = 0; i < 16; ++i) {
    const auto at = static_cast<size_t>(i);
    block.Byte(2 + at, i | (15 - i) << 4);
    expected[at] = 0.5f * static_cast<float>(numbers[i]);
    expected[at + 16] = 0.5f * static_cast<float>(numbers[15 - i]);
  }
  EXPECT_EQ(block.Values(), expected);
}

TEST(DequantizeTest, IQ4_XSScalesHaveSixBitsInTwoPlaces) {
  Block block(DType::kIQ4_XS);
  block.Half(0, 0.5f);
  block.Byte(3, 0x88);  // the high bits of scales 5 and 7: 2
  block.Byte(4, 0x70);  // the low bits of scale 1: 7
  block.Byte(6, 0x90);  // the low bits of scale 5: 9
  block.Byte(7, 0x10);  // the low bits of scale 7: 1
  block.Byte(8 + 16 + 3, 0xf0);
  block.Byte(8 + 5 * 16, 0x0f);
  // A code of 0 stands for -127.
  std::vector<float> expected = Filled(256, 0.5f * -32 * -127);
  for (size_t i = 0; i < 32; ++i) {
    expected[32 + i] = 0.5f * (7 - 32) * -127;
    expected[160 + i] = 0.5f * (32 + 9 - 32) * -127;
    expected[224 + i] = 0.5f * (32 + 1 - 32) * -127;
  }
  expected[32 + 19] = 0.5f * (7 - 32) * 113;
  expected[160] = 0.5f * 9 * 113;
  EXPECT_EQ(block.Values(), expected);
}

TEST(DequantizeTest, MXFP4ScalesArePowersOfTwo) {
  const float numbers[] = {0, 0.5f,  1,  1.5f,  2,  3,  4,  6,
                           0, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  for (const int exponent : {0, 1, 2, 126, 127, 128, 252}) {
    Block block(DType::kMXFP4);
    block.Byte(0, exponent);
    std::vector<float> expected(32);
    for (int i = 0; i < 16; ++i) {
      const auto at = static_cast<size_t>(i);
      block.Byte(1 + at, i | (15 - i) << 4);
      expected[at] = std::ldexp(numbers[i], exponent - 127);
      expected[at + 16] = std::ldexp(numbers[15 - i], exponent - 127);
    }
    EXPECT_EQ(block.Values(), expected) << exponent;
  }
}

TEST(DequantizeTest, Q3_KThirdBitsAndScalesLieApart) {
  Block block(DType::kQ3_K);
  block.Half(108, 0.5f);
  block.Byte(31, 0x22);            // the third bits of weights 63 and 191
  block.Byte(32 + 31, 0x0d);       // weights 31: 1, 63: 3
  block.Byte(32 + 32 + 31, 0x80);  // weight 255: 2
  block.Byte(96 + 3, 0xa5);        // low bits of scales 3: 5, 11: 10
  block.Byte(96 + 7, 0xf0);        // the low bits of scale 15
  block.Byte(96 + 8 + 3, 0xd2);    // high bits of scales 3, 7, 11, 15: 2 0 1 3
  // Codes of 0 stand for -4, scales of 0 for -32.
  std::vector<float> expected = Filled(256, 0.5f * -32 * -4);
  for (size_t i = 0; i < 16; ++i) {
    expected[3 * 16 + i] = 0.5f * (32 + 5 - 32) * -4;
    expected[11 * 16 + i] = 0.5f * (16 + 10 - 32) * -4;
    expected[15 * 16 + i] = 0.5f * (48 + 15 - 32) * -4;
  }
  expected[31] = 0.5f * -32 * (1 - 4);
  expected[63] = 0.5f * 5 * (3 + 4 - 4);
  expected[191] = 0.5f * -6 * (4 - 4);
  expected[255] = 0.5f * 31 * (2 - 4);
  EXPECT_EQ(block.Values(), expected);
}

TEST(DequantizeTest, Q2_KScalesAndMinimumsAreNibbles) {
  Block block(DType::kQ2_K);
  block.Half(80, 0.5f).Half(82, 0.25f);
  block.Byte(1, 0x75);             // scale 1: 5, min 1: 7
  block.Byte(9, 0x0c);             // scale 9: 12
  block.Byte(15, 0xf1);            // scale 15: 1, min 15: 15
  block.Byte(16 + 17, 0x01);       // weight 17: 1
  block.Byte(16 + 32 + 31, 0xc8);  // weights 159: 0, 191: 2, 223: 0, 255: 3
  block.Byte(16 + 32 + 16, 0x03);  // weight 144: 3
  std::vector<float> expected = Filled(256, 0.0f);
  for (size_t i = 16; i < 32; ++i) expected[i] = -7 * 0.25f;
  for (size_t i = 240; i < 256; ++i) expected[i] = -15 * 0.25f;
  expected[17] = 0.5f * 5 * 1 - 7 * 0.25f;
  expected[144] = 0.5f * 12 * 3;
  expected[255] = 0.5f * 1 * 3 - 15 * 0.25f;
  EXPECT_EQ(block.Values(), expected);
}

TEST(DequantizeTest, FloatsAreThemselves) {
  const uint16_t halves[] = {0x3c00, 0x8001, 0x7bff};
  std::vector<float> out(3, kPoison);
  Dequantize(DType::kF16, reinterpret_cast<const std::byte*>(halves), 3,
             out.data());
  EXPECT_EQ(out, (std::vector<float>{1.0f, -0x1p-24f, 65504.0f}));
  Dequantize(DType::kBF16, reinterpret_cast<const std::byte*>(halves), 3,
             out.data());
  EXPECT_EQ(out, (std::vector<float>{0x1p-7f, -0x1p-133f, 0x1.fep120f}));
  const float floats[] = {1.5f, -0.0f, 0x1p-149f};
  Dequantize(DType::kF32, reinterpret_cast<const std::byte*>(floats), 3,
             out.data());
  EXPECT_EQ(std::memcmp(out.data(), floats, sizeof(floats)), 0);
}

// Rows of a file may be at any address.
TEST(DequantizeTest, MisalignedSourcesAndSeveralBlocks) {
  std::vector<std::byte> bytes(1 + 2 * 34);
  bytes[1 + 34 + 1] = std::byte{0x3c};  // d = 1 in the second block
  bytes[1 + 34 + 2 + 5] = std::byte{9};
  std::vector<float> out(64, kPoison);
  Dequantize(DType::kQ8_0, bytes.data() + 1, 64, out.data());
  std::vector<float> expected = Filled(64, 0.0f);
  expected[32 + 5] = 9.0f;
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace tiercel
