#include "kernels/system/spin.h"

#include <chrono>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

using std::chrono::steady_clock;

TEST(SpinTest, EndsAfterItsTimeAndStaysSo) {
  constexpr std::chrono::milliseconds kMost{2};
  const auto began = steady_clock::now();
  Spin spin(kMost);
  while (spin.Again()) {
  }
  EXPECT_GE(steady_clock::now() - began, kMost);
  EXPECT_FALSE(spin.Again());
}

TEST(SpinTest, WithoutTimeItNeverSpins) {
  Spin spin(std::chrono::nanoseconds{0});
  EXPECT_FALSE(spin.Again());
}

}  // namespace
}  // namespace tiercel
