#include "kernels/select/mean_scores.h"

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

namespace tiercel::mean_scores_test {
namespace {

constexpr uint16_t kPoisonF16 = 0x7e00;  // NaN

// The elements between the digests of one head and the next are NaN.
struct Problem {
  Problem(int heads, int kv_heads, int head_dim, int64_t num_chunks)
      : q(static_cast<size_t>(heads * head_dim)),
        p{.q = nullptr,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
          .means = nullptr,
          .means_stride = num_chunks * head_dim + 5,
          .num_chunks = num_chunks,
          .out = nullptr,
          .out_stride = (num_chunks + 15) / 16 * 16 + 16} {
    std::mt19937 random(17);
    NormalFloats normal;
    for (float& x : q) x = normal(random);
    means.assign(static_cast<size_t>(kv_heads * p.means_stride), kPoisonF16);
    for (int64_t i = 0; i < std::ssize(means); ++i) {
      if (i % p.means_stride < num_chunks * head_dim) {
        means[static_cast<size_t>(i)] = F16FromF32(normal(random));
      }
    }
  }

  std::string Name() const {
    return std::to_string(p.heads) + " " + std::to_string(p.kv_heads) + " " +
           std::to_string(p.head_dim) + " " + std::to_string(p.num_chunks);
  }
  float Mean(int kv_head, int64_t chunk, int64_t d) const {
    return F32FromF16(means[static_cast<size_t>(kv_head * p.means_stride +
                                                chunk * p.head_dim + d)]);
  }

  // Returns [heads, num_chunks]. Elements after a head's scores, padded to a
  // multiple of 16, must not change.
  std::vector<float> Run(Stream& stream) const {
    OnDevice<float> queries(stream, q);
    OnDevice<uint16_t> digests(stream, means);
    OnDevice<float> given(
        stream, std::vector<float>(static_cast<size_t>(p.heads * p.out_stride),
                                   kPoison));
    MeanScoresParams run = p;
    run.q = queries.data();
    run.means = digests.data();
    run.out = given.data();
    const absl::Status status = MeanScores(stream, run);
    EXPECT_TRUE(status.ok()) << status;
    const std::vector<float> out = given.Read();
    std::vector<float> scores;
    for (int64_t h = 0; h < p.heads; ++h) {
      const auto head = out.begin() + h * p.out_stride;
      scores.insert(scores.end(), head, head + p.num_chunks);
      EXPECT_TRUE(std::all_of(head + p.out_stride - 16, head + p.out_stride,
                              [](float x) { return std::isnan(x); }));
    }
    return scores;
  }

  // Compares with the formula in double: the chain and the scale are off by
  // head_dim + 1 roundings of the sum of magnitudes.
  void ExpectNear(const std::vector<float>& out) const {
    ASSERT_EQ(std::ssize(out), p.heads * p.num_chunks);
    for (int64_t i = 0; i < std::ssize(out); ++i) {
      const int64_t head = i / p.num_chunks;
      double dot = 0;
      double magnitude = 0;
      for (int64_t d = 0; d < p.head_dim; ++d) {
        const double product =
            static_cast<double>(q[static_cast<size_t>(head * p.head_dim + d)]) *
            Mean(static_cast<int>(head / (p.heads / p.kv_heads)),
                 i % p.num_chunks, d);
        dot += product;
        magnitude += std::fabs(product);
      }
      ASSERT_NEAR(out[static_cast<size_t>(i)], dot * p.scale,
                  (p.head_dim + 1) * 0x1p-24 * magnitude * p.scale)
          << Name() << ": " << i;
    }
  }

  std::vector<float> q;
  std::vector<uint16_t> means;
  MeanScoresParams p;
};

TEST(MeanScoresTest, HandWorked) {
  for (DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    Problem problem(4, 2, 8, 2);
    problem.p.scale = 0.5f;
    std::fill(problem.q.begin(), problem.q.end(), 0.0f);
    problem.q[8] = 2;              // head 1, KV head 0
    problem.q[3 * 8 + 7] = -4.0f;  // head 3, KV head 1
    const auto set = [&](int64_t g, int64_t c, int64_t d, float x) {
      problem
          .means[static_cast<size_t>(g * problem.p.means_stride + c * 8 + d)] =
          F16FromF32(x);
    };
    std::fill(problem.means.begin(), problem.means.end(), uint16_t{0});
    set(0, 0, 0, 3.0f);
    set(0, 1, 0, 5.0f);
    set(1, 1, 7, 0.25f);
    EXPECT_EQ(problem.Run(*MakeStream(device)),
              (std::vector<float>{0, 0, 3, 5, 0, 0, 0, -0.5f}));
  }
}

class MeanScoresBackendTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, MeanScoresBackendTest,
                         testing::ValuesIn(FastBackends()), NameOfBackend);

TEST_P(MeanScoresBackendTest, EqualsReferenceAndFormula) {
  const auto ref = MakeStream(DeviceKind::kRef);
  const auto fast = NewStream(2);
  for (auto [heads, kv_heads] : {std::pair(1, 1), {4, 4}, {9, 3}, {17, 1}}) {
    for (int64_t head_dim : Some({8, 16, 40, 128})) {
      for (int64_t num_chunks : Some({0, 1, 15, 16, 17, 129, 300}, {17, 129})) {
        const Problem problem(heads, kv_heads, static_cast<int>(head_dim),
                              num_chunks);
        const std::vector<float> out = problem.Run(*fast);
        problem.ExpectNear(out);
        const std::vector<float> expected = problem.Run(*ref);
        problem.ExpectNear(expected);
        if (!HasFma()) continue;
        EXPECT_TRUE(SameBits(out, expected)) << problem.Name();
      }
    }
  }
}

TEST(MeanScoresTest, RefusesWrongShapes) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  const Problem problem(4, 2, 16, 3);
  std::vector<float> out(128, kPoison);
  const auto code_of = [&](auto change) {
    MeanScoresParams p = problem.p;
    p.q = InPlace(problem.q.data());
    p.means = InPlace(problem.means.data());
    p.out = InPlace(out.data());
    change(p);
    return CodeOf(MeanScores(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.heads = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.heads = 5; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.head_dim = 12; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.num_chunks = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.means_stride = 47; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.out_stride = 17; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.out_stride = 0; }), "invalid_sizes");
  for (float x : out) EXPECT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace tiercel::mean_scores_test
