#include "models/format/check_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lib/status/error.h"
#include "models/format/files_for_test.h"
#include "models/format/gguf.h"
#include "models/format/gguf_writer_for_test.h"

// A27 of the project's table of bad inputs: the data itself is wrong.

namespace tiercel {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<BadTensor> Check(const GgufWriter& writer) {
  const auto checkpoint = OpenGguf("m", MemoryOpener({{"m", writer.Bytes()}}));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto bad =
      CheckTensors(**checkpoint, [](uint64_t, uint64_t) { return true; });
  EXPECT_TRUE(bad.ok()) << bad.status();
  return *bad;
}

// The offsets of a block's 16-bit floats, by the format's layout tables.
struct Case {
  DType type;
  std::vector<int> scales;
};
const std::vector<Case>& QuantisedCases() {
  static const auto& cases = *new std::vector<Case>{
      {DType::kQ8_0, {0}},    {DType::kQ4_0, {0}},    {DType::kQ4_1, {0, 2}},
      {DType::kQ5_0, {0}},    {DType::kQ5_1, {0, 2}}, {DType::kQ4_K, {0, 2}},
      {DType::kQ5_K, {0, 2}}, {DType::kQ6_K, {208}},  {DType::kIQ4_NL, {0}},
      {DType::kIQ4_XS, {0}},  {DType::kQ3_K, {108}},  {DType::kQ2_K, {80, 82}}};
  return cases;
}

void Put16(std::string* bytes, size_t at, uint16_t bits) {
  std::memcpy(bytes->data() + at, &bits, sizeof(bits));
}

TEST(CheckTensors, A27ScalesOfEveryQuantisedType) {
  for (const Case& c : QuantisedCases()) {
    SCOPED_TRACE(InfoOf(c.type).name);
    const size_t block = InfoOf(c.type).block_bytes;
    const uint64_t row = InfoOf(c.type).block_elements;
    for (const int scale : c.scales) {
      for (const int bits : {0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xffff}) {
        std::string data(block * 7, '\0');
        Put16(&data, 5 * block + scale, static_cast<uint16_t>(bits));
        Put16(&data, 6 * block + scale, static_cast<uint16_t>(bits));
        GgufWriter w;
        w.Tensor("before", {4}, DType::kF32);
        w.Tensor("bad", {row, 7}, c.type, data);
        const std::vector<BadTensor> bad = Check(w);
        ASSERT_THAT(bad, SizeIs(1));
        EXPECT_EQ(bad[0].name, "bad");
        EXPECT_EQ(bad[0].first_block, 5);
        EXPECT_EQ(bad[0].blocks, 2);
      }
    }
  }
}

// No byte but the scales' can make a block bad.
TEST(CheckTensors, A27OtherBytesOfABlockAreAnything) {
  for (const Case& c : QuantisedCases()) {
    SCOPED_TRACE(InfoOf(c.type).name);
    std::string data(InfoOf(c.type).block_bytes, '\xff');
    for (const int scale : c.scales) Put16(&data, scale, 0x3c00);
    GgufWriter w;
    w.Tensor("t", {static_cast<uint64_t>(InfoOf(c.type).block_elements)},
             c.type, data);
    EXPECT_THAT(Check(w), IsEmpty());
  }
}

TEST(CheckTensors, A27ElementsOfPlainTypes) {
  const auto bad_of = [](DType type, std::string_view element) {
    std::string data;
    for (int i = 0; i < 3; ++i) data.append(element.size(), '\0');
    data += element;
    GgufWriter w;
    w.Tensor("t", {4}, type, data);
    const std::vector<BadTensor> bad = Check(w);
    if (bad.empty()) return int64_t{-1};
    return bad[0].first_block;
  };
  using Bytes = std::string_view;
  EXPECT_EQ(bad_of(DType::kF32, Bytes("\0\0\x80\x7f", 4)), 3);  // infinity
  EXPECT_EQ(bad_of(DType::kF32, Bytes("\0\0\x80\xff", 4)), 3);
  EXPECT_EQ(bad_of(DType::kF32, Bytes("\1\0\x80\x7f", 4)), 3);  // NaN
  EXPECT_EQ(bad_of(DType::kF32, Bytes("\xff\xff\x7f\x7f", 4)), -1);
  EXPECT_EQ(bad_of(DType::kF16, Bytes("\0\x7c", 2)), 3);
  EXPECT_EQ(bad_of(DType::kF16, Bytes("\1\xfc", 2)), 3);
  EXPECT_EQ(bad_of(DType::kF16, Bytes("\xff\x7b", 2)), -1);
  EXPECT_EQ(bad_of(DType::kBF16, Bytes("\x80\x7f", 2)), 3);
  EXPECT_EQ(bad_of(DType::kBF16, Bytes("\xc0\xff", 2)), 3);
  EXPECT_EQ(bad_of(DType::kBF16, Bytes("\x7f\x7f", 2)), -1);
}

TEST(CheckTensors, A27ExponentsOfMXFP4) {
  std::string data(17 * 3, '\xff');
  data[0] = '\0';
  data[17] = '\xfe';
  GgufWriter w;
  w.Tensor("t", {32, 3}, DType::kMXFP4, data);
  const std::vector<BadTensor> bad = Check(w);
  ASSERT_THAT(bad, SizeIs(1));
  EXPECT_EQ(bad[0].first_block, 2);
  EXPECT_EQ(bad[0].blocks, 1);
}

// Longer than one piece of reading, and not a whole number of them.
TEST(CheckTensors, BlocksAreCountedAcrossPieces) {
  constexpr uint64_t kBlocks = (9 << 20) / 210;
  std::string data(kBlocks * 210, '\0');
  Put16(&data, (kBlocks - 1) * 210 + 208, 0x7c00);
  GgufWriter w;
  w.Tensor("t", {256, kBlocks}, DType::kQ6_K, data);
  const std::vector<BadTensor> bad = Check(w);
  ASSERT_THAT(bad, SizeIs(1));
  EXPECT_EQ(bad[0].first_block, static_cast<int64_t>(kBlocks - 1));
}

TEST(CheckTensors, ReportsProgressAndStops) {
  GgufWriter w;
  w.Tensor("a", {3 << 20}, DType::kF32).Tensor("b", {8}, DType::kF32);
  const auto checkpoint = OpenGguf("m", MemoryOpener({{"m", w.Bytes()}}));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::vector<uint64_t> steps;
  ASSERT_TRUE(CheckTensors(**checkpoint, [&](uint64_t done, uint64_t total) {
                EXPECT_EQ(total, (12u << 20) + 32);
                steps.push_back(done);
                return true;
              }).ok());
  EXPECT_THAT(
      steps, testing::ElementsAre(4 << 20, 8 << 20, 12 << 20, (12 << 20) + 32));
  int calls = 0;
  const auto stopped = CheckTensors(
      **checkpoint, [&](uint64_t, uint64_t) { return ++calls < 2; });
  EXPECT_EQ(ClassOf(stopped.status()), ErrorClass::kCancelled);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace tiercel
