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

TEST(RopeAnglesTest, RefusesWrongShapes) {
  const std::unique_ptr<Stream> stream = MakeStream(DeviceKind::kCpu);
  const double inv_freq = 1.0;
  float out = 3.0f;
  EXPECT_EQ(CodeOf(RopeAngles(*stream, {&inv_freq, 0, 1.0, 0, 1, &out, &out})),
            "invalid_sizes");
  EXPECT_EQ(CodeOf(RopeAngles(*stream, {&inv_freq, 1, 1.0, -1, 1, &out, &out})),
            "invalid_sizes");
  EXPECT_EQ(CodeOf(RopeAngles(*stream, {&inv_freq, 1, 1.0, 0, -1, &out, &out})),
            "invalid_sizes");
  EXPECT_EQ(out, 3.0f);
}

}  // namespace
}  // namespace tiercel
