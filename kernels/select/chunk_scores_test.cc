#include "kernels/select/chunk_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/number/half.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "tests/setup/draws.h"

namespace tiercel::chunk_scores_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint16_t kPoisonF16 = 0x7e00;  // NaN

// The digests of one KV head are followed by NaN up to those of the next.
struct Problem {
  Problem(int heads, int kv_heads, int head_dim, int64_t num_chunks)
      : stride(num_chunks * head_dim + 5),
        q(static_cast<size_t>(heads * head_dim)),
        means(static_cast<size_t>(kv_heads * stride), kPoisonF16) {
    std::mt19937 random(17);
    NormalFloats normal;
    for (float& x : q) x = normal(random);
    for (int64_t i = 0; i < kv_heads * stride; ++i) {
      if (i % stride < num_chunks * head_dim) {
        means[static_cast<size_t>(i)] = F16FromF32(normal(random));
      }
    }
    p = {nullptr,
         heads,
         kv_heads,
         head_dim,
         1.0f / std::sqrt(static_cast<float>(head_dim)),
         nullptr,
         stride,
         num_chunks,
         nullptr};
  }

  std::string Name() const {
    std::string name;
    for (int64_t n : {int64_t{p.heads}, int64_t{p.kv_heads},
                      int64_t{p.head_dim}, p.num_chunks}) {
      name += std::to_string(n) + " ";
    }
    return name;
  }

  float* Query(int head) { return q.data() + int64_t{head} * p.head_dim; }
  uint16_t& Mean(int kv_head, int64_t chunk, int d) {
    return means[static_cast<size_t>(kv_head * stride + chunk * p.head_dim +
                                     d)];
  }
  void SetMean(int kv_head, int64_t chunk, int d, float mean) {
    Mean(kv_head, chunk, d) = F16FromF32(mean);
  }

  // Returns [kv_heads, num_chunks]. There is one element more than is used, so
  // that a write past the end is noticed.
  std::vector<float> Run(Stream& stream) const {
    OnDevice<float> queries(stream, q);
    OnDevice<uint16_t> digests(stream, means);
    OnDevice<float> given(
        stream,
        std::vector<float>(static_cast<size_t>(p.kv_heads * p.num_chunks) + 1,
                           kPoison));
    ChunkScoresParams run = p;
    run.q = queries.data();
    run.means = digests.data();
    run.out = given.data();
    const absl::Status status = ChunkScores(stream, run);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<float> out = given.Read();
    EXPECT_TRUE(std::isnan(out.back()));
    out.pop_back();
    return out;
  }

  int64_t stride;
  std::vector<float> q;
  std::vector<uint16_t> means;
  ChunkScoresParams p;
};

// Compares with the formula in double, within a bound on the error of float
// arithmetic. A score is off by at most head_dim + 1 roundings of the sum of
// magnitudes, and its distance to the maximum by one more; both are relative
// errors of its weight. The sum of n weights adds n / 16 + 5 roundings, Exp
// 1e-7 twice, the quotient and the sum over heads one each. Weights below e^-87
// count as e^-87.
void ExpectNear(Problem& problem, const std::vector<float>& out) {
  constexpr double kRounding = 0x1p-24;
  const ChunkScoresParams& p = problem.p;
  const int group = p.heads / p.kv_heads;
  const auto n = static_cast<size_t>(p.num_chunks);
  ASSERT_EQ(out.size(), static_cast<size_t>(p.kv_heads) * n);
  if (n == 0) return;
  for (int g = 0; g < p.kv_heads; ++g) {
    std::vector<double> expected(n, 0.0);
    std::vector<double> tolerance(n, 0.0);
    for (int h = g * group; h < (g + 1) * group; ++h) {
      std::vector<double> score(n);
      double error = 0;
      for (size_t c = 0; c < n; ++c) {
        double dot = 0;
        double magnitude = 0;
        for (int d = 0; d < p.head_dim; ++d) {
          const double product =
              static_cast<double>(problem.Query(h)[d]) *
              F32FromF16(problem.Mean(g, static_cast<int64_t>(c), d));
          dot += product;
          magnitude += std::fabs(product);
        }
        score[c] = dot * p.scale;
        error =
            std::max(error, (p.head_dim + 1) * kRounding * magnitude * p.scale);
      }
      const double max = *std::max_element(score.begin(), score.end());
      const double min = *std::min_element(score.begin(), score.end());
      error += (max - min) * kRounding;
      double sum = 0;
      for (double& x : score) sum += x = std::exp(x - max);
      const double relative =
          2 * (2 * error + 2e-7 +
               (static_cast<double>(n) / 16 + 6 + group) * kRounding);
      for (size_t c = 0; c < n; ++c) {
        expected[c] += score[c] / sum;
        tolerance[c] += relative * score[c] / sum + 2e-38;
      }
    }
    for (size_t c = 0; c < n; ++c) {
      ASSERT_NEAR(out[static_cast<size_t>(g) * n + c], expected[c],
                  tolerance[c])
          << problem.Name() << ": KV head " << g << " chunk " << c;
    }
  }
}

TEST(ChunkScoresTest, HandWorked) {
  for (DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    Problem problem(4, 2, 8, 2);
    std::fill(problem.q.begin(), problem.q.end(), 0.0f);
    std::fill(problem.means.begin(), problem.means.end(), uint16_t{0});
    problem.p.scale = 0.5f;
    problem.SetMean(0, 0, 0, 1.0f);
    problem.SetMean(0, 1, 0, 2.0f);
    problem.SetMean(1, 1, 7, 2.0f);
    problem.Query(0)[0] = 2.0f;  // scores 1 and 2; head 1: 0 and 0
    problem.Query(2)[7] = 1.0f;  // scores 0 and 1
    problem.Query(3)[7] = 2.0f;  // scores 0 and 2
    const std::vector<float> out = problem.Run(*MakeStream(device));
    EXPECT_NEAR(out[0], 0.76894142, 2e-7);  // 1 / (1 + e) + 1 / 2
    EXPECT_NEAR(out[1], 1.23105858, 3e-7);
    EXPECT_NEAR(out[2], 0.38814434, 2e-7);  // 1 / (1 + e) + 1 / (1 + e^2)
    EXPECT_NEAR(out[3], 1.61185566, 3e-7);
  }
}

class ChunkScoresBackendTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) fast_ = NewStream(2);
  }

  // Compares both streams with the formula and, if Fma rounds once, with each
  // other bit for bit.
  void Check(Problem& problem) {
    const std::vector<float> out = problem.Run(*fast_);
    const std::vector<float> expected = problem.Run(*ref_);
    ExpectNear(problem, expected);
    ExpectNear(problem, out);
    if (!HasFma()) return;
    EXPECT_TRUE(SameBits(out, expected)) << problem.Name();
  }

  std::unique_ptr<Stream> ref_ = MakeStream(DeviceKind::kRef);
  std::unique_ptr<Stream> fast_;
};
INSTANTIATE_TEST_SUITE_P(Backends, ChunkScoresBackendTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

TEST_P(ChunkScoresBackendTest, EqualsReferenceAndFormula) {
  for (auto [heads, kv_heads] : {std::pair(1, 1), {4, 4}, {9, 3}, {28, 4}}) {
    for (int64_t head_dim : Fewer({8, 16, 40, 64, 128}, {8, 128})) {
      for (int64_t num_chunks :
           Fewer({0, 1, 2, 15, 16, 17, 33, 100}, {0, 1, 33, 257})) {
        Problem problem(heads, kv_heads, static_cast<int>(head_dim),
                        num_chunks);
        Check(problem);
      }
    }
  }
}

TEST_P(ChunkScoresBackendTest, EveryNumberOfHeadsInATile) {
  for (int heads = 1; heads <= 17; heads += TriesFew() ? 4 : 1) {
    for (int head_dim : {24, 32}) {
      Problem problem(heads, 1, head_dim, 35);
      Check(problem);
    }
  }
}

// There are more chunks than one work item has.
TEST_P(ChunkScoresBackendTest, ThreadsDoNotShow) {
  for (auto [head_dim, num_chunks] :
       {std::pair(64, 1100), {128, 513}, {4096, 40}}) {
    Problem problem(6, 2, head_dim, num_chunks);
    const std::vector<float> one = problem.Run(*NewStream(1));
    ExpectNear(problem, one);
    for (int threads : Threads({2, 3})) {
      const std::unique_ptr<Stream> stream = NewStream(threads);
      EXPECT_TRUE(SameBits(problem.Run(*stream), one)) << problem.Name();
    }
    Check(problem);
  }
}

// Weights that vanish, a maximum far below zero, and a difference that
// overflows.
TEST_P(ChunkScoresBackendTest, FarScores) {
  for (Stream* stream : {ref_.get(), fast_.get()}) {
    Problem problem(1, 1, 8, 17);
    problem.p.scale = 1.0f;
    std::fill(problem.q.begin(), problem.q.end(), 0.0f);
    problem.Query(0)[0] = 1.0f;
    for (int64_t c = 0; c < 17; ++c) problem.SetMean(0, c, 0, -1000.0f);
    for (float x : problem.Run(*stream)) EXPECT_NEAR(x, 1.0 / 17, 2e-8);

    problem.SetMean(0, 16, 0, -1.0f);
    std::vector<float> out = problem.Run(*stream);
    EXPECT_EQ(out[16], 1.0f);
    for (size_t c = 0; c < 16; ++c) EXPECT_LE(std::fabs(out[c]), 2e-38f);

    problem.Query(0)[0] = 5e33f;
    problem.SetMean(0, 3, 0, 6e4f);
    problem.SetMean(0, 5, 0, -6e4f);
    out = problem.Run(*stream);
    for (size_t c = 0; c < 17; ++c) {
      EXPECT_NEAR(out[c], c == 3 ? 1.0f : 0.0f, 2e-38) << c;
    }
  }
}

TEST_P(ChunkScoresBackendTest, AHeadThatIsNotFiniteContributesNothing) {
  for (Stream* stream : {ref_.get(), fast_.get()}) {
    for (float fault : {kPoison, kInf, -kInf, 3e38f}) {
      Problem problem(4, 2, 24, 19);
      problem.Query(1)[3] = fault;
      problem.SetMean(0, 18, 3, 10.0f);
      const std::vector<float> out = problem.Run(*stream);
      // Without head 1, half of KV head 0 is left.
      Problem rest(2, 2, 24, 19);
      rest.p.scale = problem.p.scale;
      rest.means = problem.means;
      std::copy_n(problem.Query(0), 24, rest.Query(0));
      std::copy_n(problem.Query(2), 24, rest.Query(1));
      const std::vector<float> expected = rest.Run(*stream);
      const Problem whole(4, 2, 24, 19);
      const std::vector<float> healthy = whole.Run(*stream);
      for (size_t c = 0; c < 19; ++c) {
        EXPECT_EQ(out[c], expected[c]) << fault << " " << c;
        EXPECT_EQ(out[19 + c], healthy[19 + c]) << fault << " " << c;
      }
    }
  }
}

TEST_P(ChunkScoresBackendTest, ADigestThatIsNotFiniteSilencesItsHeads) {
  for (Stream* stream : {ref_.get(), fast_.get()}) {
    for (float fault : {kPoison, kInf, -kInf}) {
      for (int64_t chunk : {0, 15, 18}) {
        Problem problem(4, 2, 24, 19);
        const std::vector<float> healthy = problem.Run(*stream);
        problem.SetMean(1, chunk, 23, fault);
        const std::vector<float> out = problem.Run(*stream);
        for (size_t c = 0; c < 19; ++c) {
          EXPECT_EQ(out[c], healthy[c]) << fault << " " << c;
          EXPECT_EQ(out[19 + c], 0.0f) << fault << " " << c;
        }
      }
    }
  }
}

TEST(ChunkScoresTest, RefusesWrongShapes) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  const Problem problem(4, 2, 16, 3);
  std::vector<float> out(6, kPoison);
  const auto code_of = [&](auto change) {
    ChunkScoresParams p = problem.p;
    p.q = InPlace(problem.q.data());
    p.means = InPlace(problem.means.data());
    p.out = InPlace(out.data());
    change(p);
    return CodeOf(ChunkScores(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.heads = 5; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.kv_heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.head_dim = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.head_dim = 12; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.num_chunks = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.num_chunks = int64_t{1} << 60; }),
            "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.means_stride = 47; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) {
              p.heads = 1 << 30;
              p.num_chunks = int64_t{1} << 28;
              p.means_stride = int64_t{1} << 40;
            }),
            "out_of_memory");
  for (float x : out) EXPECT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace tiercel::chunk_scores_test
