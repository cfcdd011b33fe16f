#include "kernels/kv/kv_convert.h"

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kv/kv_row.h"
#include "kernels/kv/testing.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "tests/setup/draws.h"

namespace tiercel::kv_convert_test {
namespace {

constexpr std::byte kUntouched{0xa5};

using Bytes = std::vector<std::byte>;

// Rows of `type` made from random floats of any size.
Bytes RandomRows(DType type, int head_dim, int64_t rows, unsigned seed) {
  std::mt19937 random(seed);
  NormalFloats normal(0.0f, 4.0f);
  const auto row_bytes = static_cast<size_t>(RowBytes(type, head_dim));
  Bytes bytes(static_cast<size_t>(rows) * row_bytes);
  std::vector<float> values(static_cast<size_t>(head_dim));
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    const float size = std::ldexp(1.0f, static_cast<int>(random() % 40) - 30);
    for (float& x : values) x = normal(random) * size;
    if (random() % 8 == 0) {
      values[0] = std::numeric_limits<float>::infinity();
    }
    KvRowFromF32(type, values.data(), head_dim, bytes.data() + r * row_bytes);
  }
  return bytes;
}

// Returns true if rows of `type` have the same bytes. Any NaN equals any other,
// as devices make different ones.
bool SameRows(DType type, const Bytes& got, const Bytes& expected) {
  if (got.size() != expected.size()) return false;
  if (InfoOf(type).block_elements > 1) return got == expected;
  const auto size = static_cast<size_t>(RowBytes(type, 1));
  for (size_t at = 0; at < got.size(); at += size) {
    if (std::equal(got.data() + at, got.data() + at + size,
                   expected.data() + at)) {
      continue;
    }
    float values[2];
    KvRowToF32(type, got.data() + at, 1, &values[0]);
    KvRowToF32(type, expected.data() + at, 1, &values[1]);
    if (!std::isnan(values[0]) || !std::isnan(values[1])) return false;
  }
  return true;
}

class KvConvertTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) stream_ = NewStream(2);
  }

  std::unique_ptr<Stream> stream_;
};
INSTANTIATE_TEST_SUITE_P(Backends, KvConvertTest, testing::ValuesIn(Backends()),
                         NameOfBackend);

// Compares each row with the definition. No byte beside the rows may change.
TEST_P(KvConvertTest, EveryTypeToEveryOther) {
  constexpr int64_t kRows[] = {1, 0, 7, 33, 2, 5};
  for (int head_dim : {8, 24, 32, 64, 96, 160}) {
    for (DType from : KvTypes(head_dim)) {
      for (DType to : KvTypes(head_dim)) {
        SCOPED_TRACE(testing::Message()
                     << InfoOf(from).name << " to " << InfoOf(to).name
                     << ", head_dim " << head_dim);
        const auto from_bytes = static_cast<size_t>(RowBytes(from, head_dim));
        const auto to_bytes = static_cast<size_t>(RowBytes(to, head_dim));
        std::vector<Bytes> sources;
        for (int64_t rows : kRows) {
          sources.push_back(RandomRows(from, head_dim, rows, 5));
        }
        std::vector<OnDevice<std::byte>> given;
        std::vector<OnDevice<std::byte>> out;
        std::vector<KvConvertParams::Run> runs;
        for (size_t i = 0; i < std::size(kRows); ++i) {
          given.emplace_back(*stream_, sources[i]);
          out.emplace_back(
              *stream_,
              Bytes(static_cast<size_t>(kRows[i] + 1) * to_bytes, kUntouched));
          runs.push_back({given.back().data(), out.back().data(), kRows[i]});
        }
        const absl::Status status =
            KvConvert(*stream_, {.from = from,
                                 .to = to,
                                 .head_dim = head_dim,
                                 .runs = runs.data(),
                                 .num_runs = std::ssize(runs)});
        ASSERT_TRUE(status.ok()) << status;
        for (size_t i = 0; i < std::size(kRows); ++i) {
          const Bytes got = out[i].Read();
          Bytes expected(got.size(), kUntouched);
          std::vector<float> values(static_cast<size_t>(head_dim));
          for (size_t r = 0; r < static_cast<size_t>(kRows[i]); ++r) {
            const std::byte* const row = sources[i].data() + r * from_bytes;
            std::byte* const place = expected.data() + r * to_bytes;
            if (from == to) {
              std::copy(row, row + to_bytes, place);
              continue;
            }
            KvRowToF32(from, row, head_dim, values.data());
            KvRowFromF32(to, values.data(), head_dim, place);
          }
          EXPECT_TRUE(SameRows(to, got, expected)) << "run " << i;
        }
      }
    }
  }
}

TEST_P(KvConvertTest, RefusesWhatItCannotRead) {
  const std::byte row[256] = {};
  std::byte out[256] = {kUntouched};
  const KvConvertParams::Run one = {InPlace(row), InPlace(out), 1};
  const KvConvertParams::Run less = {InPlace(row), InPlace(out), -1};
  const auto code = [&](DType from, DType to, int head_dim,
                        const KvConvertParams::Run* runs, int64_t num) {
    return CodeOf(KvConvert(*stream_, {from, to, head_dim, runs, num}));
  };
  EXPECT_EQ(code(DType::kF16, DType::kF32, 12, &one, 1), "invalid_sizes");
  EXPECT_EQ(code(DType::kF16, DType::kF32, 0, &one, 1), "invalid_sizes");
  EXPECT_EQ(code(DType::kF16, DType::kF32, 8, &one, -1), "invalid_sizes");
  EXPECT_EQ(code(DType::kF16, DType::kF32, 8, &less, 1), "invalid_sizes");
  EXPECT_EQ(code(DType::kF16, DType::kQ8_0, 8, &one, 1), "invalid_kv_type");
  EXPECT_EQ(code(DType::kQ4_1, DType::kF32, 32, &one, 1), "invalid_kv_type");
  EXPECT_EQ(out[0], kUntouched);
}

}  // namespace
}  // namespace tiercel::kv_convert_test
