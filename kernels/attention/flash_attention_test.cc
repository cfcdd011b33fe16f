#include "kernels/attention/flash_attention.h"

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/attention/testing.h"
#include "kernels/system/testing.h"

namespace tiercel::flash_attention_test {
namespace {

// f16 has 11 significant bits. A query and, of a type in blocks, a key are
// rounded, and so are a weight and such a value.
Rounded RoundedHalves(DType type) {
  const double each = type == DType::kF16 ? 0x1p-11 : 2 * 0x1p-11;
  return {.product = each, .term = each};
}

absl::Status Fast(Stream& stream, AttentionParams p) {
  p.fast = true;
  return Attention(stream, p);
}

// Rows and places at, before and after the ends of tiles, blocks and pages.
std::vector<Case> Cases() {
  struct Place {
    int64_t begin;
    int64_t position;
    int64_t rows;
  };
  std::vector<Case> cases;
  for (const DType type : {DType::kF16, DType::kQ8_0, DType::kQ4_0}) {
    for (const auto& [heads, kv_heads, head_dim] :
         {std::tuple(2, 1, 64), {3, 3, 96}, {8, 2, 128}}) {
      for (const Place& at : {Place{0, 0, 1},
                              {0, 0, 17},
                              {0, 63, 2},
                              {5, 5, 30},
                              {0, 130, 65},
                              {70, 190, 3},
                              {129, 260, 20},
                              {300, 301, 1}}) {
        cases.push_back({heads, kv_heads, head_dim, type, type, at.begin,
                         at.position, at.rows});
      }
    }
  }
  return cases;
}

class FlashAttentionTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, FlashAttentionTest,
                         testing::ValuesIn(Gpus()), NameOfBackend);

TEST_P(FlashAttentionTest, IsSoftmaxAttention) {
  const std::unique_ptr<Stream> stream = NewStream();
  for (const Case& c : Cases()) {
    Problem problem(c);
    ExpectNearSoftmax(problem, problem.Run(*stream, 0, c.rows, Fast),
                      RoundedHalves(c.type_k));
  }
}

// A prompt that is read in other blocks of rows gives the same bits.
TEST_P(FlashAttentionTest, ARowDependsOnNoOther) {
  const std::unique_ptr<Stream> stream = NewStream();
  for (const DType type : {DType::kF16, DType::kQ8_0, DType::kQ4_0}) {
    const Case c = {4, 2, 64, type, type, 3, 100, 40};
    Problem problem(c);
    const std::vector<float> all = problem.Run(*stream, 0, c.rows, Fast);
    std::vector<float> parts;
    for (int64_t row = 0; row < c.rows;) {
      const int64_t rows = std::min<int64_t>(row % 7 + 1, c.rows - row);
      const std::vector<float> part = problem.Run(*stream, row, rows, Fast);
      parts.insert(parts.end(), part.begin(), part.end());
      row += rows;
    }
    EXPECT_TRUE(SameBits(all, parts));
  }
}

// Scores grow by position, so that each block rescales the ones before.
TEST_P(FlashAttentionTest, RescalesGreatScores) {
  const std::unique_ptr<Stream> stream = NewStream();
  const Case c = {1, 1, 64, DType::kF16, DType::kF16, 0, 200, 2};
  Problem problem(c);
  std::vector<float> key(64);
  for (int64_t t = 0; t < c.position + c.rows; ++t) {
    for (float& x : key) x = static_cast<float>(t) / 16.0f;
    KvRowFromF32(c.type_k, key.data(), c.head_dim, problem.K(t, 0));
  }
  for (int64_t row = 0; row < c.rows; ++row) {
    std::fill_n(problem.Query(row), c.head_dim, 1.0f);
  }
  ExpectNearSoftmax(problem, problem.Run(*stream, 0, c.rows, Fast),
                    RoundedHalves(c.type_k));
}

TEST_P(FlashAttentionTest, AScoreThatIsNotFiniteMakesItsRowNaN) {
  const std::unique_ptr<Stream> stream = NewStream();
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    const Case c = {1, 1, 64, DType::kF16, DType::kF16, 0, 70, 3};
    Problem problem(c);
    problem.Query(1)[5] = bad;
    const std::vector<float> out = problem.Run(*stream, 0, c.rows, Fast);
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(std::isnan(out[i]), i / 64 == 1) << i;
    }
  }
}

// Shapes that it does not fit are computed with the reference's bits.
TEST_P(FlashAttentionTest, OtherShapesAreExact) {
  const std::unique_ptr<Stream> stream = NewStream();
  const std::unique_ptr<Stream> ref = MakeStream(DeviceKind::kRef, 1);
  for (const Case& c :
       {Case{2, 1, 40, DType::kF16, DType::kF16, 0, 20, 3},
        {2, 1, 64, DType::kF16, DType::kBF16, 0, 20, 3},
        {1, 1, 64, DType::kF16, DType::kF16, 0, 20, 3, {{{{0, 2}}, 4}}}}) {
    Problem problem(c);
    EXPECT_TRUE(
        SameBits(problem.Run(*stream, 0, c.rows, Fast), problem.Run(*ref)));
  }
}

}  // namespace
}  // namespace tiercel::flash_attention_test
