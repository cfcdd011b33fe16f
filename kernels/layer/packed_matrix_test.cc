#include "kernels/layer/packed_matrix.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/layer/testing.h"
#include "kernels/number/dequantize.h"
#include "kernels/system/testing.h"
#include "kernels/system/thread_pool.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

constexpr PanelOrder kOrders[] = {PanelOrder::kLanes, PanelOrder::kFragments};

// Equal bits, or both NaN (a product's NaN has no promised payload).
void ExpectSame(const std::vector<float>& got,
                const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  if (std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) ==
      0) {
    return;
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(float)), 0)
        << "column " << i << ": " << got[i] << " for " << expected[i];
  }
}

struct Source {
  // Any bytes are a valid row: every scale, every code, NaN and infinities.
  Source(DType of, int64_t rows, int64_t columns) : type(of), cols(columns) {
    std::mt19937 random(static_cast<unsigned>(rows * 1000 + columns));
    // One byte in front makes every row misaligned.
    bytes.resize(static_cast<size_t>(1 + rows * RowBytes(type, cols)));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  }
  const std::byte* Row(int64_t row) const {
    return bytes.data() + 1 + row * RowBytes(type, cols);
  }
  std::vector<float> Values(int64_t row) const {
    std::vector<float> values(static_cast<size_t>(cols), kPoison);
    Dequantize(type, Row(row), cols, values.data());
    return values;
  }
  DType type;
  int64_t cols;
  std::vector<std::byte> bytes;
};

std::vector<float> Unpacked(const PackedMatrix& matrix, int64_t row) {
  std::vector<float> out(static_cast<size_t>(matrix.cols()), 12345.0f);
  matrix.UnpackRow(row, out.data());
  return out;
}

TEST(PackedMatrixTest, UnpackedRowsAreTheFilesValues) {
  for (const PanelOrder order : kOrders) {
    for (const DType type : EveryType()) {
      const int64_t block = InfoOf(type).block_elements;
      for (const int64_t rows : {1, 2, 15, 16, 17, 33}) {
        for (const int64_t blocks : {1, 2, 3, 7}) {
          SCOPED_TRACE(testing::Message() << InfoOf(type).name << " " << rows
                                          << " x " << blocks << " blocks");
          const Source source(type, rows, blocks * block);
          absl::StatusOr<PackedMatrix> matrix = PackedMatrix::Create(
              type, rows, blocks * block, SystemMemory(), order);
          ASSERT_TRUE(matrix.ok()) << matrix.status();
          EXPECT_EQ(matrix->order(), order);
          for (int64_t row = rows - 1; row >= 0; --row) {
            matrix->PackRow(row, source.Row(row));
          }
          for (int64_t row = 0; row < rows; ++row) {
            ExpectSame(Unpacked(*matrix, row), source.Values(row));
          }
        }
      }
    }
  }
}

// The layout that kernels read, worked out by hand: quads 2 and 6 of row 9 and
// block 1 of three are words 1 and 3 of lane 6.
TEST(PackedMatrixTest, FragmentsLieAsTheMatrixUnitTakesThem) {
  const auto bytes = [](const PackedMatrix& matrix, int64_t at) {
    uint32_t word;
    std::memcpy(&word, HostAddress(matrix.data()) + at, sizeof(word));
    return word;
  };
  std::vector<std::byte> q4(3 * 18);
  for (size_t i = 0; i < 4; ++i) {
    q4[18 + 2 + 8 + i] = static_cast<std::byte>(0x90 + i);  // codes 8, 24...
    q4[36 + 2 + 8 + i] = static_cast<std::byte>(0x50 + i);
  }
  q4[18] = std::byte{0x34};
  q4[19] = std::byte{0x12};
  PackedMatrix matrix = *PackedMatrix::Create(
      DType::kQ4_0, 16, 96, SystemMemory(), PanelOrder::kFragments);
  matrix.PackRow(9, q4.data());
  EXPECT_EQ(bytes(matrix, 6 * 16 + 8 + 4), 0x93929190u);
  EXPECT_EQ(bytes(matrix, 512 + 6 * 8 + 4), 0x53525150u);  // the odd block
  EXPECT_EQ(bytes(matrix, 3 * 256 + 32 + 4), 0x12340000u);

  std::vector<std::byte> q8(3 * 34);
  for (size_t i = 0; i < 4; ++i) {
    q8[34 + 2 + 8 + i] = static_cast<std::byte>(i);
    q8[34 + 2 + 24 + i] = static_cast<std::byte>(4 + i);
  }
  matrix = *PackedMatrix::Create(DType::kQ8_0, 16, 96, SystemMemory(),
                                 PanelOrder::kFragments);
  matrix.PackRow(9, q8.data());
  EXPECT_EQ(bytes(matrix, 512 + 6 * 16 + 4), 0x83828180u);
  EXPECT_EQ(bytes(matrix, 512 + 6 * 16 + 12), 0x87868584u);
}

// Every f16 can be a scale, also subnormals, infinities and NaN, and is never
// rounded.
TEST(PackedMatrixTest, EveryScaleSurvives) {
  for (const DType type : EveryType()) {
    const std::vector<size_t> halves = HalvesOf(type);
    const int64_t cols = InfoOf(type).block_elements;
    if (cols == 1) continue;
    Source source(type, 1, cols);
    PackedMatrix matrix = *PackedMatrix::Create(type, 1, cols);
    PackedMatrix fragments = *PackedMatrix::Create(
        type, 1, cols, SystemMemory(), PanelOrder::kFragments);
    for (uint32_t bits = 0; bits < 65536; bits += TriesLess() ? 11 : 1) {
      if (type == DType::kMXFP4) source.bytes[1] = static_cast<std::byte>(bits);
      uint32_t value = bits;
      for (const size_t at : halves) {
        const auto half = static_cast<uint16_t>(value);
        std::memcpy(source.bytes.data() + 1 + at, &half, sizeof(half));
        value *= 40503u;
      }
      matrix.PackRow(0, source.Row(0));
      ExpectSame(Unpacked(matrix, 0), source.Values(0));
      fragments.PackRow(0, source.Row(0));
      ExpectSame(Unpacked(fragments, 0), source.Values(0));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(PackedMatrixTest, EveryHalfSurvives) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    std::vector<uint16_t> bits(65536);
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
    PackedMatrix matrix = *PackedMatrix::Create(type, 1, 65536);
    const auto* source = reinterpret_cast<const std::byte*>(bits.data());
    matrix.PackRow(0, source);
    std::vector<float> expected(bits.size());
    Dequantize(type, source, 65536, expected.data());
    ExpectSame(Unpacked(matrix, 0), expected);
  }
}

TEST(PackedMatrixTest, PackingAgainReplaces) {
  for (const PanelOrder order : kOrders) {
    for (const DType type : EveryType()) {
      const int64_t cols = 256;
      const Source first(type, 2, cols);
      Source second(type, 1, cols);
      for (std::byte& byte : second.bytes) byte ^= std::byte{0x5a};
      PackedMatrix matrix =
          *PackedMatrix::Create(type, 16, cols, SystemMemory(), order);
      matrix.PackRow(8, first.Row(1));
      matrix.PackRow(0, first.Row(0));
      matrix.PackRow(0, second.Row(0));
      ExpectSame(Unpacked(matrix, 0), second.Values(0));
      ExpectSame(Unpacked(matrix, 8), first.Values(1));
    }
  }
}

TEST(PackedMatrixTest, PanelsFromSeveralThreads) {
  for (const DType type : EveryType()) {
    const int64_t rows = 130;
    const Source source(type, rows, 256);
    PackedMatrix matrix = *PackedMatrix::Create(type, rows, 256);
    ThreadPool pool(4);
    pool.ParallelFor(matrix.panels(), 1, [&](int64_t panel, int64_t, int) {
      for (int64_t row = panel * 16; row < std::min(rows, panel * 16 + 16);
           ++row) {
        matrix.PackRow(row, source.Row(row));
      }
    });
    for (int64_t row = 0; row < rows; ++row) {
      ExpectSame(Unpacked(matrix, row), source.Values(row));
    }
  }
}

TEST(PackedMatrixTest, SizesAndAlignment) {
  const PackedMatrix q4 = *PackedMatrix::Create(DType::kQ4_1, 17, 96);
  EXPECT_EQ(q4.panels(), 2);
  EXPECT_EQ(q4.panel_bytes(), 16 * 3 * 20);
  EXPECT_EQ(q4.bytes(), 2 * 16 * 3 * 20);
  EXPECT_TRUE(q4.data().IsAligned(64));
  // 3 blocks of 16 rows of 34 bytes are 1632, not a multiple of 64.
  EXPECT_EQ(PackedMatrix::Create(DType::kQ8_0, 1, 96)->panel_bytes(), 1664);
  EXPECT_EQ(PackedMatrix::Create(DType::kQ6_K, 1, 256)->panel_bytes(), 3392);
  EXPECT_EQ(PackedMatrix::Create(DType::kF16, 1, 3)->panel_bytes(), 128);
}

TEST(PackedMatrixTest, RefusesShapesThatAreNone) {
  const struct {
    DType type;
    int64_t rows, cols;
  } cases[] = {{DType::kF32, 0, 4},   {DType::kF32, 4, 0},
               {DType::kF32, -1, 4},  {DType::kQ8_0, 4, 33},
               {DType::kQ4_K, 4, 32}, {DType::kQ6_K, 4, 255}};
  for (const auto& c : cases) {
    const absl::StatusOr<PackedMatrix> matrix =
        PackedMatrix::Create(c.type, c.rows, c.cols);
    EXPECT_EQ(CodeOf(matrix.status()), "invalid_shape") << matrix.status();
  }
}

TEST(PackedMatrixTest, RefusesWhatNoMemoryHolds) {
  for (const DType type : EveryType()) {
    for (const int64_t rows : {int64_t{1} << 30, INT64_MAX}) {
      const absl::StatusOr<PackedMatrix> matrix =
          PackedMatrix::Create(type, rows, int64_t{1} << 40);
      EXPECT_EQ(CodeOf(matrix.status()), "out_of_memory") << matrix.status();
    }
  }
}

}  // namespace
}  // namespace tiercel
