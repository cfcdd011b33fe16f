#include "kernels/select/coverage.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "tests/setup/draws.h"

namespace tiercel::coverage_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The elements between the scores of one head and the next are NaN.
struct Problem {
  Problem(int heads, int kv_heads, int64_t positions, int64_t newest,
          int64_t num_kept)
      : scores(static_cast<size_t>(heads * (positions + 3)), kPoison),
        p{.scores = nullptr,
          .scores_stride = positions + 3,
          .heads = heads,
          .kv_heads = kv_heads,
          .positions = positions,
          .kept = nullptr,
          .num_kept = num_kept,
          .newest = newest,
          .out = nullptr} {
    std::mt19937 random(5);
    NormalFloats normal(0.0f, 3.0f);
    for (int64_t i = 0; i < std::ssize(scores); ++i) {
      if (i % p.scores_stride < positions) {
        scores[static_cast<size_t>(i)] = normal(random);
      }
    }
    for (int g = 0; g < kv_heads; ++g) {
      std::vector<int32_t>& one = kept.emplace_back(newest);
      std::iota(one.begin(), one.end(), 0);
      std::shuffle(one.begin(), one.end(), random);
      one.resize(static_cast<size_t>(num_kept));
    }
  }

  float& Score(int64_t head, int64_t j) {
    return scores[static_cast<size_t>(head * p.scores_stride + j)];
  }
  std::string Name() const {
    return std::to_string(p.heads) + " " + std::to_string(p.positions) + " " +
           std::to_string(p.newest) + " " + std::to_string(p.num_kept);
  }

  std::vector<float> Run(Stream& stream) const {
    OnDevice<float> weights(stream, scores);
    std::vector<const int32_t*> rows;
    for (const auto& one : kept) rows.push_back(one.data());
    OnDevice<float> given(
        stream, std::vector<float>(static_cast<size_t>(p.heads) + 1, kPoison));
    CoverageParams run = p;
    run.scores = weights.data();
    run.kept = rows.data();
    run.out = given.data();
    const absl::Status status = Coverage(stream, run);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<float> out = given.Read();
    EXPECT_TRUE(std::isnan(out.back()));
    out.pop_back();
    return out;
  }

  // Compares with the formula in double. A weight is off by the rounding of its
  // distance to the maximum, which is its relative error, and by Exp's 1e-7;
  // each of the two sums adds n / 16 + 5 roundings.
  void ExpectNear(const std::vector<float>& out) {
    for (int64_t h = 0; h < p.heads; ++h) {
      double max = -1e300;
      double min = 1e300;
      for (int64_t j = 0; j < p.positions; ++j) {
        max = std::max(max, static_cast<double>(Score(h, j)));
        min = std::min(min, static_cast<double>(Score(h, j)));
      }
      double all = 0;
      double seen = 0;
      const std::vector<int32_t>& keeps =
          kept[static_cast<size_t>(h / (p.heads / p.kv_heads))];
      for (int64_t j = 0; j < p.positions; ++j) {
        const double w = std::exp(static_cast<double>(Score(h, j)) - max);
        all += w;
        const bool sees =
            j >= p.newest || std::count(keeps.begin(), keeps.end(), j) > 0;
        seen += sees ? w : 0;
      }
      const double relative =
          2 * (1e-7 + (max - min + static_cast<double>(p.positions) / 16 + 7) *
                          0x1p-24);
      ASSERT_NEAR(out[static_cast<size_t>(h)], seen / all,
                  2 * relative * seen / all)
          << Name() << ": head " << h;
    }
  }

  std::vector<float> scores;
  std::vector<std::vector<int32_t>> kept;
  CoverageParams p;
};

TEST(CoverageTest, HandWorked) {
  for (DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    Problem problem(2, 1, 4, 3, 1);
    const float ln3 = 1.0986123f;
    problem.kept = {{1}};
    for (int64_t j = 0; j < 4; ++j) problem.Score(0, j) = 5;  // weights 1 1 1 1
    problem.Score(1, 0) = ln3;                                // weights 3 1 1 1
    for (int64_t j = 1; j < 4; ++j) problem.Score(1, j) = 0;
    const std::vector<float> out = problem.Run(*MakeStream(device));
    EXPECT_NEAR(out[0], 0.5, 1e-7);
    EXPECT_NEAR(out[1], 1.0 / 3, 1e-7);
  }
}

class CoverageBackendTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) fast_ = NewStream(2);
  }

  std::unique_ptr<Stream> ref_ = MakeStream(DeviceKind::kRef);
  std::unique_ptr<Stream> fast_;
};
INSTANTIATE_TEST_SUITE_P(Backends, CoverageBackendTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

TEST_P(CoverageBackendTest, EqualsReferenceAndFormula) {
  for (auto [heads, kv_heads] : {std::pair(1, 1), {9, 3}}) {
    for (int64_t positions : {1, 15, 16, 17, 100, 1000}) {
      for (int64_t newest : {int64_t{0}, positions / 2, positions}) {
        for (int64_t num_kept : {int64_t{0}, newest / 3, newest}) {
          Problem problem(heads, kv_heads, positions, newest, num_kept);
          const std::vector<float> out = problem.Run(*fast_);
          const std::vector<float> expected = problem.Run(*ref_);
          problem.ExpectNear(out);
          problem.ExpectNear(expected);
          if (!HasFma()) continue;
          EXPECT_TRUE(SameBits(out, expected)) << problem.Name();
        }
      }
    }
  }
}

TEST_P(CoverageBackendTest, AHeadThatIsNotFiniteShows) {
  for (Stream* stream : {ref_.get(), fast_.get()}) {
    for (float fault : {kPoison, kInf, -kInf}) {
      for (int64_t j : {0, 15, 18}) {
        Problem problem(2, 1, 19, 10, 4);
        const std::vector<float> healthy = problem.Run(*stream);
        problem.Score(1, j) = fault;
        const std::vector<float> out = problem.Run(*stream);
        EXPECT_EQ(out[0], healthy[0]);
        EXPECT_TRUE(std::isnan(out[1]));
      }
    }
  }
}

TEST(CoverageTest, RefusesWhatCannotBe) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  Problem problem(4, 2, 20, 10, 3);
  std::vector<const int32_t*> rows = {problem.kept[0].data(),
                                      problem.kept[1].data()};
  std::vector<float> out(4, kPoison);
  const auto code_of = [&](auto change) {
    CoverageParams p = problem.p;
    p.scores = InPlace(problem.scores.data());
    p.kept = rows.data();
    p.out = InPlace(out.data());
    change(p);
    return CodeOf(Coverage(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.heads = 5; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.positions = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.scores_stride = 19; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.num_kept = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.newest = -1; }), "invalid_position");
  EXPECT_EQ(code_of([](auto& p) { p.newest = 21; }), "invalid_position");
  problem.kept[1][2] = 10;
  EXPECT_EQ(code_of([](auto&) {}), "invalid_position");
  problem.kept[1][2] = -1;
  EXPECT_EQ(code_of([](auto&) {}), "invalid_position");
  for (float x : out) EXPECT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace tiercel::coverage_test
