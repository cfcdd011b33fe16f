#include "kernels/layer/rms_norm.h"

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/base/error.h"
#include "kernels/base/testing.h"

namespace tiercel {
namespace {

// Strides are longer than rows; what lies between rows must stay as it is.
struct Problem {
  Problem(int64_t rows, int groups, int dim)
      : stride(int64_t{groups} * dim + 5), weight(static_cast<size_t>(dim)) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0.1f, 3.0f);
    x.resize(static_cast<size_t>(rows * stride));
    for (float& value : x) value = normal(random);
    for (float& value : weight) value = normal(random);
    p = {x.data(), stride, weight.data(), 1e-5f, rows,
         groups,   dim,    nullptr,       stride};
  }

  std::vector<float> Run(Stream& stream) {
    std::vector<float> out(x.size(), kPoison);
    p.out = out.data();
    const absl::Status status = RmsNorm(stream, p);
    EXPECT_TRUE(status.ok()) << status;
    return out;
  }

  int64_t stride;
  std::vector<float> x;
  std::vector<float> weight;
  RmsNormParams p;
};

// A sum of n squares by 16 chains is off by n / 16 + 5 roundings at most, the
// root halves that, five more operations follow.
void ExpectNear(const Problem& problem, const std::vector<float>& out) {
  const RmsNormParams& p = problem.p;
  const double relative = (0.5 * (p.dim / 16 + 5) + 6) * 0x1p-24;
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* got = out.data() + r * p.x_stride;
    for (int g = 0; g < p.groups; ++g) {
      const float* x = p.x + r * p.x_stride + int64_t{g} * p.dim;
      double sum = 0;
      for (int i = 0; i < p.dim; ++i) sum += static_cast<double>(x[i]) * x[i];
      const double root = std::sqrt(sum / p.dim + p.eps);
      for (int i = 0; i < p.dim; ++i) {
        const double expected = static_cast<double>(x[i]) * p.weight[i] / root;
        ASSERT_NEAR(*got++, expected, std::fabs(expected) * relative + 1e-44)
            << "dim " << p.dim << " row " << r << " element " << i;
      }
    }
    for (const float* end = out.data() + (r + 1) * p.x_stride; got < end;) {
      ASSERT_TRUE(std::isnan(*got++)) << "written between rows";
    }
  }
}

TEST(RmsNormTest, HandWorked) {
  const float x[2] = {3.0f, 4.0f};  // mean square 12.5
  const float weight[2] = {1.0f, -2.0f};
  for (Device device : {Device::kRef, Device::kCpu}) {
    float out[2] = {kPoison, kPoison};
    const std::unique_ptr<Stream> stream = MakeStream(device);
    ASSERT_TRUE(RmsNorm(*stream, {x, 2, weight, 3.5f, 1, 1, 2, out, 2}).ok());
    EXPECT_FLOAT_EQ(out[0], 0.75f);  // 3 / sqrt(12.5 + 3.5): eps is inside
    EXPECT_FLOAT_EQ(out[1], -2.0f);
  }
}

class RmsNormIsaTest : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Isas, RmsNormIsaTest,
                         testing::ValuesIn(SupportedIsas()), NameOfLevel);

TEST_P(RmsNormIsaTest, EqualsReferenceAndFormula) {
  const std::unique_ptr<Stream> ref = MakeStream(Device::kRef, 1, GetParam());
  for (int threads : {1, 3}) {
    const std::unique_ptr<Stream> cpu =
        MakeStream(Device::kCpu, threads, GetParam());
    for (int dim : {1, 2, 15, 16, 17, 31, 33, 64, 128, 576, 577, 4096}) {
      for (int groups : {1, 3}) {
        for (int64_t rows : {0, 1, 2, 67}) {
          Problem problem(rows, groups, dim);
          const std::vector<float> out = problem.Run(*cpu);
          const std::vector<float> expected = problem.Run(*ref);
          ExpectNear(problem, out);
          ExpectNear(problem, expected);
          if (GetParam() != Isa::kPortable) {
            EXPECT_TRUE(SameBits(out, expected)) << dim << " " << rows;
          }
        }
      }
    }
  }
}

TEST_P(RmsNormIsaTest, InPlace) {
  const std::unique_ptr<Stream> cpu = MakeStream(Device::kCpu, 2, GetParam());
  Problem problem(5, 2, 33);
  const std::vector<float> expected = problem.Run(*cpu);
  problem.p.out = problem.x.data();
  ASSERT_TRUE(RmsNorm(*cpu, problem.p).ok());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) continue;
    EXPECT_EQ(problem.x[i], expected[i]) << i;
  }
}

TEST_P(RmsNormIsaTest, AFaultStaysInItsGroup) {
  const std::unique_ptr<Stream> cpu = MakeStream(Device::kCpu, 1, GetParam());
  for (float fault : {kPoison, std::numeric_limits<float>::infinity()}) {
    Problem problem(2, 2, 33);
    problem.x[33 + 32] = fault;  // row 0, group 1
    const std::vector<float> out = problem.Run(*cpu);
    EXPECT_TRUE(std::isnan(out[33 + 32]));
    for (size_t i = 0; i < 33; ++i) EXPECT_TRUE(std::isfinite(out[i]));
  }
}

TEST(RmsNormTest, RefusesWrongShapes) {
  const std::unique_ptr<Stream> stream = MakeStream(Device::kCpu);
  Problem problem(2, 2, 8);
  std::vector<float> out(problem.x.size(), kPoison);
  const auto code_of = [&](auto change) {
    RmsNormParams p = problem.p;
    p.out = out.data();
    change(p);
    return CodeOf(RmsNorm(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.rows = -1; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.groups = 0; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.dim = 0; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.x_stride = 15; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.out_stride = 15; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.eps = 0.0f; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.eps = kPoison; }), "invalid_shape");
}

}  // namespace
}  // namespace tiercel
