#include "kernels/layer/fast_matmul.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/layer/packed_layout.h"
#include "kernels/layer/testing.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"

namespace tiercel::fast_matmul_test {
namespace {

double Rounded(float value) { return F32FromF16(F16FromF32(value)); }

// Compares row `r` with sums in double of the same rounded numbers. Each of the
// k additions in f32, which the matrix unit may truncate, adds 2^-23 of the
// magnitudes; so do the bias, the old value and the factor of the row.
void ExpectProductOfHalves(const MatmulProblem& problem, int64_t r,
                           const std::vector<float>& out) {
  const PackedMatrix w = problem.weights.Packed();
  const int64_t k = w.cols();
  const float* const x = &problem.x[r * (k + problem.options.x_gap)];
  double greatest = 0;
  for (int64_t i = 0; i < k; ++i) {
    greatest = std::max<double>(greatest, std::fabs(x[i]));
  }
  float scale = 1.0f;
  while (greatest * scale >= 0x1p15) scale *= 0.5f;
  std::vector<float> weights(static_cast<size_t>(k));
  for (int64_t n = 0; n < w.rows(); ++n) {
    w.UnpackRow(n, weights.data());
    double sum = 0;
    double magnitude = 0;
    for (int64_t i = 0; i < k; ++i) {
      const double product = Rounded(x[i] * scale) / scale *
                             Rounded(weights[static_cast<size_t>(i)]);
      sum += product;
      magnitude += std::fabs(product);
    }
    const auto at =
        static_cast<size_t>(r * (w.rows() + MatmulProblem::kGap) + n);
    const auto add = [&](float added) {
      sum += added;
      magnitude += std::fabs(added);
    };
    if (problem.options.bias) add(problem.bias[static_cast<size_t>(n)]);
    sum *= problem.options.scale;
    magnitude *= problem.options.scale;
    if (problem.options.store == StoreMode::kAdd) add(problem.before[at]);
    ASSERT_NEAR(out[at], sum, static_cast<double>(k + 3) * 0x1p-23 * magnitude)
        << "row " << r << " of " << problem.rows << ", column " << n;
  }
  for (int64_t i = 0; i < MatmulProblem::kGap; ++i) {
    const auto at = static_cast<size_t>(r * (w.rows() + MatmulProblem::kGap) +
                                        w.rows() + i);
    const float before =
        problem.options.store == StoreMode::kAdd ? problem.before[at] : kPoison;
    ASSERT_EQ(std::bit_cast<uint32_t>(out[at]), std::bit_cast<uint32_t>(before))
        << "behind row " << r;
  }
}

class FastMatmulTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, FastMatmulTest, testing::ValuesIn(Gpus()),
                         NameOfBackend);

// Rows and columns fill tiles, panels and blocks, or do not.
TEST_P(FastMatmulTest, IsTheProductOfHalves) {
  const std::unique_ptr<Stream> stream = NewStream();
  unsigned turn = 0;
  for (const DType type : EveryType()) {
    if (type == DType::kF32) continue;
    const bool wide_blocks = InfoOf(type).block_elements > 32;
    for (const auto& [n, k, rows] :
         {std::tuple(17, 64, 1), {100, 192, 9}, {130, 320, 129}, {1, 64, 8}}) {
      ++turn;
      // The largest takes as long as all others: one type in three has it.
      if (rows == 129 && turn % 3 != 0 && !TriesAll()) continue;
      const MatmulProblem problem(
          RandomWeights(type, n, wide_blocks ? k / 64 * 256 : k, turn), rows,
          {.bias = turn % 2 == 0,
           .store = turn / 2 % 2 == 0 ? StoreMode::kAssign : StoreMode::kAdd,
           .x_gap = turn % 3,
           .fast = true,
           .scale = turn % 2 == 0 ? 1.0f : 0.25f});
      const std::vector<float> out = problem.Run(*stream);
      for (int64_t r = 0; r < rows; r += r % 8 == 0 ? 1 : 7) {
        ExpectProductOfHalves(problem, r, out);
        ASSERT_FALSE(HasFatalFailure()) << InfoOf(type).name << " k=" << k;
      }
    }
  }
}

// A prompt that is read in other blocks of rows gives the same bits.
TEST_P(FastMatmulTest, ARowDependsOnNoOther) {
  const std::unique_ptr<Stream> stream = NewStream();
  for (const DType type : {DType::kF16, DType::kQ4_K}) {
    const MatmulProblem problem(RandomWeights(type, 40, 256, 1), 140,
                                {.fast = true});
    const std::vector<float> all = problem.Run(*stream);
    std::vector<float> parts;
    for (const auto& [begin, end] : {std::pair(0, 1), {1, 12}, {12, 140}}) {
      const std::vector<float> part = problem.Run(*stream, begin, end);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_TRUE(SameBits(all, parts));
  }
}

TEST_P(FastMatmulTest, RowsBeyondF16AreScaled) {
  const std::unique_ptr<Stream> stream = NewStream();
  MatmulProblem problem(RandomWeights(DType::kQ8_0, 20, 64, 1), 4,
                        {.fast = true});
  const int64_t stride = 64 + problem.options.x_gap;
  problem.x[5] = 1e6f;
  problem.x[static_cast<size_t>(stride) + 7] = -0x1p15f;
  problem.x[static_cast<size_t>(2 * stride) + 7] = 32767.0f;
  const std::vector<float> out = problem.Run(*stream);
  for (int64_t r = 0; r < problem.rows; ++r) {
    ExpectProductOfHalves(problem, r, out);
  }
}

TEST_P(FastMatmulTest, ANumberThatIsNotFiniteStaysInItsRow) {
  const std::unique_ptr<Stream> stream = NewStream();
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    MatmulProblem problem(RandomWeights(DType::kQ4_1, 20, 64, 1), 3,
                          {.fast = true});
    problem.x[static_cast<size_t>(64 + problem.options.x_gap) + 3] = bad;
    const std::vector<float> out = problem.Run(*stream);
    for (int64_t r = 0; r < problem.rows; ++r) {
      for (size_t n = 0; n < 20; ++n) {
        EXPECT_EQ(std::isfinite(out[static_cast<size_t>(r) * 23 + n]), r != 1);
      }
    }
  }
}

// Products that it does not fit have the reference's bits.
TEST_P(FastMatmulTest, OtherProductsAreExact) {
  const std::unique_ptr<Stream> stream = NewStream();
  const std::unique_ptr<Stream> ref = MakeStream(DeviceKind::kRef, 1);
  for (const auto& [type, k, compute] :
       {std::tuple(DType::kF32, 64, Compute::kQ8),
        {DType::kQ8_0, 96, Compute::kQ8},
        {DType::kQ8_0, 64, Compute::kF32}}) {
    const MatmulProblem problem(RandomWeights(type, 20, k, 1), 5,
                                {.compute = compute, .fast = true});
    EXPECT_TRUE(SameBits(problem.Run(*stream), problem.Run(*ref)))
        << InfoOf(type).name << " k=" << k;
  }
}

// Outputs of one call may go by different ways.
TEST_P(FastMatmulTest, TypesMayBeMixed) {
  const std::unique_ptr<Stream> stream = NewStream();
  const DType types[] = {DType::kQ4_0, DType::kF32, DType::kF16};
  constexpr int64_t kRows = 5;
  std::vector<MatmulProblem> problems;
  for (const DType type : types) {
    problems.push_back({RandomWeights(type, 20, 64, 1), kRows, {.fast = true}});
  }
  OnDevice<float> x(*stream, problems[0].x);
  MatmulParams p = {};
  p.x = x.data();
  p.x_stride = 64 + problems[0].options.x_gap;
  p.rows = kRows;
  p.num_outputs = 3;
  p.fast = true;
  PackedMatrix weights[3];
  std::vector<OnDevice<float>> outs;
  for (size_t i = 0; i < 3; ++i) {
    weights[i] = problems[i].weights.PackedFor(*stream);
    outs.emplace_back(*stream,
                      std::vector<float>(problems[i].before.size(), kPoison));
    p.outputs[i] = {&weights[i], nullptr, outs[i].data(),
                    20 + MatmulProblem::kGap, StoreMode::kAssign};
  }
  ASSERT_TRUE(Matmul(*stream, p).ok());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(SameBits(outs[i].Read(), problems[i].Run(*stream))) << i;
  }
}

}  // namespace
}  // namespace tiercel::fast_matmul_test
