#include "kernels/layer/rope.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

std::vector<double> InvFreq(int half, double base) {
  std::vector<double> inv_freq;
  for (int i = 0; i < half; ++i) {
    inv_freq.push_back(std::pow(base, -static_cast<double>(i) / half));
  }
  return inv_freq;
}

struct Angles {
  std::vector<float> cos;
  std::vector<float> sin;
};

Angles MakeAngles(Stream& stream, const std::vector<double>& inv_freq,
                  int64_t position, int64_t rows, double scale = 1.0) {
  const auto half = static_cast<int>(inv_freq.size());
  const std::vector<float> poison(static_cast<size_t>(rows * half), kPoison);
  Angles angles{poison, poison};
  const absl::Status status =
      RopeAngles(stream, {inv_freq.data(), half, scale, position, rows,
                          angles.cos.data(), angles.sin.data()});
  EXPECT_TRUE(status.ok()) << status;
  return angles;
}

TEST(RopeAnglesTest, HandWorked) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu, 2);
  const Angles angles =
      MakeAngles(*stream, {M_PI / 2, M_PI / 3}, 1, 2, /*scale=*/2.0);
  const std::vector<float> cos = {0.0f, 1.0f, -2.0f, -1.0f};
  const std::vector<float> sin = {2.0f, 1.7320508f, 0.0f, 1.7320508f};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(angles.cos[i], cos[i], 1e-7) << i;
    EXPECT_NEAR(angles.sin[i], sin[i], 1e-7) << i;
  }
}

// In long double the angle is good to 1e-13 at position 1e6, so that only the
// errors of the product in double (1e-10) and of the rounding to float remain.
TEST(RopeAnglesTest, FarPositionsAreAccurate) {
  const std::vector<double> inv_freq = InvFreq(32, 10000.0);
  for (DeviceKind device : {DeviceKind::kRef, DeviceKind::kCpu}) {
    const std::unique_ptr<Stream> stream = MakeStream(device, 3);
    for (int64_t position : {0, 1, 4095, 131071, 1000000}) {
      const Angles angles = MakeAngles(*stream, inv_freq, position, 5);
      for (int64_t r = 0; r < 5; ++r) {
        for (size_t i = 0; i < 32; ++i) {
          const long double angle =
              static_cast<long double>(position + r) * inv_freq[i];
          const size_t at = static_cast<size_t>(r) * 32 + i;
          EXPECT_NEAR(angles.cos[at], static_cast<double>(cosl(angle)), 6.1e-8);
          EXPECT_NEAR(angles.sin[at], static_cast<double>(sinl(angle)), 6.1e-8);
        }
      }
    }
  }
}

TEST(RopeAnglesTest, RowsDoNotDependOnOtherRowsOrThreads) {
  const std::unique_ptr<Stream> one = MakeStream(DeviceKind::kCpu, 1);
  const std::unique_ptr<Stream> three = MakeStream(DeviceKind::kCpu, 3);
  const std::vector<double> inv_freq = InvFreq(17, 500000.0);
  const Angles all = MakeAngles(*three, inv_freq, 1000, 301);
  for (size_t r = 0; r < 301; ++r) {
    const Angles row =
        MakeAngles(*one, inv_freq, 1000 + static_cast<int64_t>(r), 1);
    for (size_t i = 0; i < 17; ++i) {
      ASSERT_EQ(row.cos[i], all.cos[r * 17 + i]);
      ASSERT_EQ(row.sin[i], all.sin[r * 17 + i]);
    }
  }
}

class RopeTest : public BackendTest {
 protected:
  // Returns the result of Rope on copies of x, [rows, p.stride], and of angles.
  static std::vector<float> Run(Stream& stream, const std::vector<float>& x,
                                const Angles& angles, RopeParams p) {
    OnDevice<float> in(stream, x);
    OnDevice<float> cos(stream, angles.cos);
    OnDevice<float> sin(stream, angles.sin);
    p.tensors[0].x = in.data();
    p.cos = cos.data();
    p.sin = sin.data();
    const absl::Status status = Rope(stream, p);
    EXPECT_TRUE(status.ok()) << status;
    return in.Read();
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, RopeTest, testing::ValuesIn(Backends()),
                         NameOfBackend);

TEST_P(RopeTest, HandWorked) {
  // One head of 5: pairs (1, 3) and (2, 4), the last element stays.
  const std::vector<float> x =
      Run(*NewStream(), {1.0f, 2.0f, 3.0f, 4.0f, 5.0f},
          {{0.5f, 0.0f}, {2.0f, 1.0f}},
          {1, {{nullptr, 5, 1}}, 1, 5, 2, nullptr, nullptr});
  EXPECT_EQ(x, (std::vector<float>{-5.5f, -4.0f, 3.5f, 2.0f, 5.0f}));
}

TEST_P(RopeTest, RotatesEveryHeadAndNothingElse) {
  const std::unique_ptr<Stream> host = MakeStream(DeviceKind::kCpu);
  for (int threads : {1, 2, 3}) {
    const std::unique_ptr<Stream> stream = NewStream(threads);
    for (int half : {1, 4, 20, 32}) {
      for (int extra : {0, 3}) {
        for (int64_t rows : {0, 1, 2, 67}) {
          const int heads = 3;
          const int head_dim = 2 * half + extra;
          const int64_t stride = int64_t{heads} * head_dim + 5;
          std::mt19937 random(5);
          std::normal_distribution<float> normal;
          std::vector<float> before(static_cast<size_t>(rows * stride));
          for (float& value : before) value = normal(random);
          const Angles angles =
              MakeAngles(*host, InvFreq(half, 10000.0), 77, rows);
          const std::vector<float> x = Run(*stream, before, angles,
                                           {1,
                                            {{nullptr, stride, heads}},
                                            rows,
                                            head_dim,
                                            half,
                                            nullptr,
                                            nullptr});
          for (int64_t at = 0; at < rows * stride; ++at) {
            const int64_t r = at / stride;
            const int64_t column = at % stride;
            const int64_t i = column % head_dim;
            const auto get = [&](int64_t j) {
              return before[static_cast<size_t>(at - i + j)];
            };
            float expected = get(i);
            if (column < heads * head_dim && i < 2 * half) {
              const auto angle = static_cast<size_t>(r * half + i % half);
              const float c = angles.cos[angle];
              const float s = angles.sin[angle];
              const float a = get(i % half);
              const float b = get(i % half + half);
              expected = i < half ? a * c - b * s : b * c + a * s;
            }
            ASSERT_EQ(x[static_cast<size_t>(at)], expected) << at;
          }
        }
      }
    }
  }
}

TEST_P(RopeTest, TwoTensorsAreAsEachAlone) {
  const std::unique_ptr<Stream> stream = NewStream(2);
  const std::unique_ptr<Stream> host = MakeStream(DeviceKind::kCpu);
  constexpr int kHalf = 3;
  constexpr int kDim = 7;
  for (int64_t rows : {0, 1, 40}) {
    const Angles angles = MakeAngles(*host, InvFreq(kHalf, 100.0), 9, rows);
    std::vector<std::vector<float>> x(2);
    RopeParams both = {2,      {{nullptr, 37, 5}, {nullptr, 15, 2}},
                       rows,   kDim,
                       kHalf,  nullptr,
                       nullptr};
    std::vector<std::vector<float>> expected(2);
    for (size_t i = 0; i < 2; ++i) {
      for (int64_t at = 0; at < rows * both.tensors[i].stride; ++at) {
        x[i].push_back(std::sin(static_cast<float>(at + 1)));
      }
      RopeParams one = both;
      one.num_tensors = 1;
      one.tensors[0] = both.tensors[i];
      expected[i] = Run(*stream, x[i], angles, one);
    }
    OnDevice<float> first(*stream, x[0]);
    OnDevice<float> second(*stream, x[1]);
    OnDevice<float> cos(*stream, angles.cos);
    OnDevice<float> sin(*stream, angles.sin);
    both.tensors[0].x = first.data();
    both.tensors[1].x = second.data();
    both.cos = cos.data();
    both.sin = sin.data();
    const absl::Status status = Rope(*stream, both);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(first.Read(), expected[0]) << rows;
    EXPECT_EQ(second.Read(), expected[1]) << rows;
  }
}

TEST(RopeEntryTest, RefusesWrongShapes) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  float zeros[8] = {};
  const DevicePtr<float> x = InPlace(zeros);
  const RopeParams good = {2, {{x, 8, 2}, {x, 8, 2}}, 1, 4, 2, x, x};
  const auto code_of = [&](auto change) {
    RopeParams p = good;
    change(p);
    return CodeOf(Rope(*stream, p));
  };
  EXPECT_EQ(code_of([](auto& p) { p.rows = -1; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.num_tensors = 0; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.num_tensors = 3; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.tensors[1].count = 0; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.half = 0; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.half = 3; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.tensors[0].stride = 7; }), "invalid_shape");
  EXPECT_EQ(code_of([](auto& p) { p.tensors[1].stride = 7; }), "invalid_shape");
  const double inv_freq = 1.0;
  float out = 3.0f;
  EXPECT_EQ(CodeOf(RopeAngles(*stream, {&inv_freq, 0, 1.0, 0, 1, &out, &out})),
            "invalid_shape");
  EXPECT_EQ(CodeOf(RopeAngles(*stream, {&inv_freq, 1, 1.0, -1, 1, &out, &out})),
            "invalid_shape");
  EXPECT_EQ(CodeOf(RopeAngles(*stream, {&inv_freq, 1, 1.0, 0, -1, &out, &out})),
            "invalid_shape");
  EXPECT_EQ(out, 3.0f);
}

}  // namespace
}  // namespace tiercel
