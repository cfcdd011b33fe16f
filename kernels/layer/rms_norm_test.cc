#include "kernels/layer/rms_norm.h"

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "tests/setup/draws.h"

namespace tiercel {
namespace {

// Strides are longer than rows; the elements between rows must not change.
struct Problem {
  Problem(int64_t rows, int groups, int dim)
      : stride(int64_t{groups} * dim + 5), weight(static_cast<size_t>(dim)) {
    std::mt19937 random(7);
    NormalFloats normal(0.1f, 3.0f);
    x.resize(static_cast<size_t>(rows * stride));
    for (float& value : x) value = normal(random);
    for (float& value : weight) value = normal(random);
    p = {InPlace(x.data()),
         stride,
         InPlace(weight.data()),
         1e-5f,
         rows,
         groups,
         dim,
         nullptr,
         stride};
  }

  std::vector<float> Run(Stream& stream) const {
    OnDevice<float> in(stream, x);
    OnDevice<float> scale(stream, weight);
    OnDevice<float> out(stream, std::vector<float>(x.size(), kPoison));
    RmsNormParams q = p;
    q.x = in.data();
    q.weight = scale.data();
    q.out = out.data();
    const absl::Status status = RmsNorm(stream, q);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(SameBits(in.Read(), x));
    return out.Read();
  }

  std::vector<float> RunInPlace(Stream& stream) const {
    OnDevice<float> in(stream, x);
    OnDevice<float> scale(stream, weight);
    RmsNormParams q = p;
    q.x = q.out = in.data();
    q.weight = scale.data();
    const absl::Status status = RmsNorm(stream, q);
    EXPECT_TRUE(status.ok()) << status;
    return in.Read();
  }

  int64_t stride;
  std::vector<float> x;
  std::vector<float> weight;
  RmsNormParams p;
};

// A sum of n squares by 16 chains is off by n / 16 + 5 roundings at most. The
// root halves that, and five more operations follow.
void ExpectNear(const Problem& problem, const std::vector<float>& out) {
  const RmsNormParams& p = problem.p;
  const double relative = (0.5 * (p.dim / 16 + 5) + 6) * 0x1p-24;
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* got = out.data() + r * p.x_stride;
    for (int g = 0; g < p.groups; ++g) {
      const float* x = problem.x.data() + r * p.x_stride + int64_t{g} * p.dim;
      double sum = 0;
      for (int i = 0; i < p.dim; ++i) sum += static_cast<double>(x[i]) * x[i];
      const double root = std::sqrt(sum / p.dim + p.eps);
      for (int i = 0; i < p.dim; ++i) {
        const double expected = static_cast<double>(x[i]) *
                                problem.weight[static_cast<size_t>(i)] / root;
        ASSERT_NEAR(*got++, expected, std::fabs(expected) * relative + 1e-44)
            << "dim " << p.dim << " row " << r << " element " << i;
      }
    }
    for (const float* end = out.data() + (r + 1) * p.x_stride; got < end;) {
      ASSERT_TRUE(std::isnan(*got++)) << "written between rows";
    }
  }
}

class RmsNormTest : public BackendTest {
 protected:
  // Compares with the formula, and with the reference's bits if the ISA has
  // fma.
  static void Check(Stream& stream, const Problem& problem) {
    const std::vector<float> out = problem.Run(stream);
    ExpectNear(problem, out);
    if (!HasFma()) return;
    const std::vector<float> expected =
        problem.Run(*MakeStream(DeviceKind::kRef));
    EXPECT_TRUE(SameBits(out, expected))
        << "dim " << problem.p.dim << ", groups " << problem.p.groups
        << ", rows " << problem.p.rows;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, RmsNormTest, testing::ValuesIn(Backends()),
                         NameOfBackend);

TEST_P(RmsNormTest, HandWorked) {
  const std::unique_ptr<Stream> stream = NewStream();
  Problem problem(1, 1, 2);
  problem.x = {3.0f, 4.0f};  // mean square 12.5
  problem.weight = {1.0f, -2.0f};
  problem.p.x_stride = problem.p.out_stride = 2;
  problem.p.eps = 3.5f;
  const std::vector<float> out = problem.Run(*stream);
  EXPECT_FLOAT_EQ(out[0], 0.75f);  // 3 / sqrt(12.5 + 3.5): eps is inside
  EXPECT_FLOAT_EQ(out[1], -2.0f);
}

TEST_P(RmsNormTest, EqualsReferenceAndFormula) {
  for (const int threads : Threads({1, 3})) {
    const std::unique_ptr<Stream> stream = NewStream(threads);
    for (const int64_t dim :
         InShort({1, 2, 15, 16, 17, 31, 33, 64, 128, 576, 577, 4096},
                 {1, 2, 15, 17, 33, 577, 4096})) {
      for (int groups : {1, 3}) {
        // Three long rows take as long as many short ones.
        for (int64_t rows :
             InShort({0, 1, 2, 67}, {0, 1, dim < 500 ? 67 : 3})) {
          Check(*stream, Problem(rows, groups, static_cast<int>(dim)));
        }
      }
    }
  }
}

TEST_P(RmsNormTest, LongGroups) {
  const std::unique_ptr<Stream> stream = NewStream();
  for (int dim : {4097, 8192, 12301}) Check(*stream, Problem(2, 2, dim));
}

TEST_P(RmsNormTest, MoreGroupsThanAGridHas) {
  Check(*NewStream(), Problem(70000, 1, 3));
}

TEST_P(RmsNormTest, InPlace) {
  const std::unique_ptr<Stream> stream = NewStream(2);
  for (int dim : {33, 5000}) {
    const Problem problem(5, 2, dim);
    const std::vector<float> expected = problem.Run(*stream);
    const std::vector<float> out = problem.RunInPlace(*stream);
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool between = std::isnan(expected[i]);
      ASSERT_EQ(out[i], between ? problem.x[i] : expected[i]) << i;
    }
  }
}

TEST_P(RmsNormTest, AFaultStaysInItsGroup) {
  const std::unique_ptr<Stream> stream = NewStream();
  for (float fault : {kPoison, std::numeric_limits<float>::infinity()}) {
    Problem problem(2, 2, 33);
    problem.x[33 + 32] = fault;  // row 0, group 1
    const std::vector<float> out = problem.Run(*stream);
    EXPECT_TRUE(std::isnan(out[33 + 32]));
    for (size_t i = 0; i < 33; ++i) EXPECT_TRUE(std::isfinite(out[i]));
    for (size_t i = 71; i < 71 + 66; ++i) EXPECT_TRUE(std::isfinite(out[i]));
  }
}

TEST(RmsNormEntryTest, RefusesWrongShapes) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  Problem problem(2, 2, 8);
  std::vector<float> out(problem.x.size(), kPoison);
  const auto code_of = [&](auto change) {
    RmsNormParams p = problem.p;
    p.out = InPlace(out.data());
    change(p);
    return CodeOf(RmsNorm(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.rows = -1; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.groups = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.dim = 0; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.x_stride = 15; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.out_stride = 15; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.eps = 0.0f; }), "invalid_sizes");
  EXPECT_EQ(code_of([](auto& p) { p.eps = kPoison; }), "invalid_sizes");
}

}  // namespace
}  // namespace tiercel
