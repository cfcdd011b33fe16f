#include "kernels/select/importance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "tests/setup/draws.h"

namespace tiercel::importance_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Scores of rows, of which later ones see more candidates, and the importance
// to which they add. The elements between one head and the next are NaN.
struct Problem {
  Problem(int64_t rows, int heads, int kv_heads, int64_t candidates,
          float decay = 1)
      : scores(static_cast<size_t>(rows * heads * (candidates + 3)), kPoison),
        before(static_cast<size_t>(kv_heads * candidates)),
        p{.scores = nullptr,
          .scores_stride = candidates + 3,
          .rows = rows,
          .heads = heads,
          .kv_heads = kv_heads,
          .candidates = candidates,
          .decay = decay,
          .before = nullptr,
          .importance = nullptr,
          .importance_stride = candidates + 5} {
    std::mt19937 random(11);
    NormalFloats normal(0.0f, 3.0f);
    for (int64_t i = 0; i < rows * heads; ++i) {
      for (int64_t j = 0; j < candidates; ++j) {
        const bool seen = j <= candidates - rows + i / heads;
        Score(i, j) = seen ? normal(random) : -kInf;
      }
    }
    for (float& x : before) x = std::fabs(normal(random));
  }

  // The score of candidate j for row r and head h, query = r * heads + h.
  float& Score(int64_t query, int64_t j) {
    return scores[static_cast<size_t>(query * p.scores_stride + j)];
  }

  std::string Name() const {
    return std::to_string(p.rows) + " " + std::to_string(p.heads) + " " +
           std::to_string(p.kv_heads) + " " + std::to_string(p.candidates) +
           " " + std::to_string(p.decay);
  }

  // Returns [kv_heads, candidates]. The elements after each head's are NaN and
  // must stay so. If `in_place`, `before` is `importance` itself; otherwise it
  // must not change.
  std::vector<float> Run(Stream& stream, bool in_place = true) const {
    const auto n = static_cast<size_t>(p.candidates);
    const auto stride = static_cast<size_t>(p.importance_stride);
    const auto heads = static_cast<size_t>(p.kv_heads);
    std::vector<float> first(heads * stride, kPoison);
    for (size_t i = 0; i < heads * n; ++i) {
      first[i / n * stride + i % n] = before[i];
    }
    OnDevice<float> given(stream, scores);
    OnDevice<float> said(stream, first);
    OnDevice<float> fresh(stream, std::vector<float>(first.size(), kPoison));
    ImportanceParams run = p;
    run.scores = given.data();
    run.before = said.data();
    run.importance = in_place ? said.data() : fresh.data();
    const absl::Status status = AddImportance(stream, run);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<float> out;
    const std::vector<float> all = in_place ? said.Read() : fresh.Read();
    if (!in_place) {
      EXPECT_TRUE(SameBits(said.Read(), first));
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (i % stride < n) {
        out.push_back(all[i]);
      } else {
        EXPECT_TRUE(std::isnan(all[i]));
      }
    }
    return out;
  }

  // Compares with roots of the softmax in double, within a bound on the error
  // of float arithmetic. The distance to the maximum is off by a rounding,
  // which is a relative error of half of it; Exp and its floor are 1e-7 each,
  // the sum of n squares adds n / 16 + 5 roundings, halved by the root, and the
  // root, the quotient and the sum over queries one each.
  void ExpectNear(const std::vector<float>& out) {
    constexpr double kRounding = 0x1p-24;
    const auto n = static_cast<size_t>(p.candidates);
    const int group = p.heads / p.kv_heads;
    std::vector<double> expected(before.begin(), before.end());
    for (double& x : expected) x *= static_cast<double>(p.decay);
    for (int64_t i = 0; i < p.rows * p.heads; ++i) {
      double max = -1e300;
      for (int64_t j = 0; j < p.candidates; ++j) {
        max = std::max(max, static_cast<double>(Score(i, j)));
      }
      double sum = 0;
      for (int64_t j = 0; j < p.candidates; ++j) {
        sum += std::exp(static_cast<double>(Score(i, j)) - max);
      }
      const auto g = static_cast<size_t>(i % p.heads / group);
      for (int64_t j = 0; j < p.candidates && sum > 0; ++j) {
        expected[g * n + static_cast<size_t>(j)] +=
            std::sqrt(std::exp(static_cast<double>(Score(i, j)) - max) / sum);
      }
    }
    const double relative = 2 * (2e-7 + (30 + static_cast<double>(n) / 32 + 8 +
                                         static_cast<double>(p.rows * group)) *
                                            kRounding);
    ASSERT_EQ(out.size(), expected.size());
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], expected[i], relative * expected[i])
          << Name() << ": " << i;
    }
  }

  std::vector<float> scores;
  std::vector<float> before;
  ImportanceParams p;
};

TEST(ImportanceTest, HandWorked) {
  for (DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    Problem problem(2, 2, 1, 3);
    std::fill(problem.before.begin(), problem.before.end(), 1.0f);
    const float ln3 = 1.0986123f;
    problem.p.scores_stride = 3;
    problem.scores = {0,     ln3,   -kInf,    // weights 1/4 and 3/4
                      5,     -kInf, -kInf,    // 1
                      7,     7,     7 + ln3,  // 1/5, 1/5 and 3/5
                      -kInf, 0,     0};       // 1/2 and 1/2
    const std::vector<float> out = problem.Run(*MakeStream(device));
    EXPECT_NEAR(out[0], 1 + 0.5 + 1 + std::sqrt(0.2), 1e-6);
    EXPECT_NEAR(out[1], 1 + std::sqrt(0.75) + std::sqrt(0.2) + std::sqrt(0.5),
                1e-6);
    EXPECT_NEAR(out[2], 1 + std::sqrt(0.6) + std::sqrt(0.5), 1e-6);
  }
}

class ImportanceBackendTest : public ThreeStreamsTest {
 protected:
  // Compares both streams with the formula and, if Fma rounds once, with each
  // other bit for bit.
  void Check(Problem& problem) {
    const std::vector<float> out = problem.Run(*one_);
    const std::vector<float> expected = problem.Run(*ref_);
    problem.ExpectNear(expected);
    problem.ExpectNear(out);
    EXPECT_TRUE(SameBits(out, problem.Run(*three_))) << problem.Name();
    if (!HasFma()) return;
    EXPECT_TRUE(SameBits(out, expected)) << problem.Name();
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, ImportanceBackendTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

TEST_P(ImportanceBackendTest, EqualsReferenceAndFormula) {
  for (auto [heads, kv_heads] : {std::pair(1, 1), {4, 4}, {9, 3}, {8, 2}}) {
    for (int64_t rows : Fewer({0, 1, 2, 16}, {0, 2})) {
      for (int64_t candidates :
           Fewer({0, 1, 2, 15, 16, 17, 33, 100}, {0, 1, 33, 257})) {
        Problem problem(rows, heads, kv_heads, candidates);
        Check(problem);
      }
    }
  }
}

// The importance from earlier rows is multiplied by `decay`, which may be 0,
// also if there are no rows to add.
TEST_P(ImportanceBackendTest, WhatIsThereDecays) {
  for (float decay : {0.0f, 0.3f, 0.9f, 4.5f}) {
    for (int64_t rows : {0, 2}) {
      Problem problem(rows, 4, 2, 33, decay);
      Check(problem);
      for (Stream* stream : {ref_.get(), one_.get()}) {
        EXPECT_TRUE(SameBits(problem.Run(*stream, /*in_place=*/false),
                             problem.Run(*stream)))
            << problem.Name();
      }
    }
  }
}

// There are more candidates than one work item has.
TEST_P(ImportanceBackendTest, ManyCandidates) {
  for (int64_t candidates : Fewer({4095, 4096, 4097, 9000}, {4097})) {
    Problem problem(2, 4, 2, candidates);
    Check(problem);
  }
}

// Weights that vanish, a maximum far below zero, a difference that overflows,
// and no candidate that is seen.
TEST_P(ImportanceBackendTest, FarScores) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    Problem problem(1, 1, 1, 17);
    std::fill(problem.before.begin(), problem.before.end(), 0.0f);
    problem.p.scores_stride = 17;
    problem.scores.assign(17, -1000.0f);
    for (float x : problem.Run(*stream))
      EXPECT_NEAR(x, std::sqrt(1 / 17.), 1e-7);

    problem.Score(0, 16) = -1.0f;
    problem.Score(0, 1) = -101.0f;
    problem.Score(0, 2) = -kInf;
    std::vector<float> out = problem.Run(*stream);
    for (size_t j = 0; j < 17; ++j) {
      EXPECT_NEAR(out[j],
                  j == 16  ? 1
                  : j == 1 ? std::exp(-50.)
                           : 0,
                  j == 16 ? 1e-7 : 1e-28);
    }
    EXPECT_EQ(out[2], 0.0f);
    EXPECT_EQ(out[3], 0.0f);

    problem.Score(0, 3) = 3e38f;
    problem.Score(0, 5) = -3e38f;
    out = problem.Run(*stream);
    for (size_t j = 0; j < 17; ++j) EXPECT_EQ(out[j], j == 3 ? 1.0f : 0.0f);

    std::fill(problem.scores.begin(), problem.scores.end(), -kInf);
    for (float x : problem.Run(*stream)) EXPECT_EQ(x, 0.0f);
  }
}

TEST_P(ImportanceBackendTest, ARowThatIsNotFiniteAddsNothing) {
  for (Stream* stream : {ref_.get(), one_.get()}) {
    for (float fault : {kPoison, kInf}) {
      for (int64_t j : {0, 15, 18}) {
        Problem problem(2, 4, 2, 19);
        problem.Score(4 + 1, j) = fault;  // row 1, head 1
        Problem rest = problem;
        for (int64_t i = 0; i < 19; ++i) rest.Score(4 + 1, i) = -kInf;
        const std::vector<float> expected = rest.Run(*stream);
        EXPECT_TRUE(SameBits(problem.Run(*stream), expected)) << fault;
        rest.ExpectNear(expected);
      }
    }
  }
}

TEST(ImportanceTest, RefusesWrongShapes) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  const Problem problem(2, 4, 2, 3);
  std::vector<float> out(6, kPoison);
  const auto code_of = [&](auto change) {
    ImportanceParams p = problem.p;
    p.scores = InPlace(problem.scores.data());
    p.before = InPlace(out.data());
    p.importance = InPlace(out.data());
    change(p);
    return CodeOf(AddImportance(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.heads = 5; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.kv_heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.rows = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.scores_stride = 2; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.importance_stride = 2; }), "invalid_sizes");
  for (float wrong : {-0.1f, 0x1p21f, kPoison}) {
    EXPECT_EQ(code_of([wrong](auto& p) { p.decay = wrong; }),
              "invalid_argument");
  }
  EXPECT_EQ(code_of([](auto& p) { p.rows = int64_t{1} << 60; }),
            "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.candidates = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.candidates = int64_t{1} << 60; }),
            "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) {
              p.rows = int64_t{1} << 28;
              p.heads = 1 << 30;
            }),
            "out_of_memory");
  for (float x : out) EXPECT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace tiercel::importance_test
