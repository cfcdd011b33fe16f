#include "kernels/base/probe.h"

#include "gtest/gtest.h"
#include "kernels/base/probe_body.h"

namespace tiercel {
namespace {

// What the loops return is what they would if every operation was done.
TEST(ProbeTest, LoopsDoTheirWork) {
  const std::vector<float> ones(256, 1.0f);
  EXPECT_EQ(portable::ProbeRead(ones.data(), 256), 256.0f);
  // Every chain converges to 2.
  EXPECT_EQ(portable::ProbeFma(100), 16 * kProbeChains * 2.0f);
  // Chain i is i + 4 per step, in 16 lanes.
  EXPECT_EQ(
      portable::ProbeInt8(10),
      16.0f * (10 * 4 * kProbeChains + kProbeChains * (kProbeChains - 1) / 2));
}

TEST(ProbeTest, PeaksArePositive) {
  const auto stream = Stream::Create({});
  ASSERT_TRUE(stream.ok()) << stream.status();
  const absl::StatusOr<Peaks> peaks = MeasurePeaks(**stream);
  ASSERT_TRUE(peaks.ok()) << peaks.status();
  EXPECT_GT(peaks->read_bytes_per_s, 0);
  EXPECT_GT(peaks->f32_ops_per_s, 0);
  EXPECT_GT(peaks->int8_ops_per_s, 0);
}

}  // namespace
}  // namespace tiercel
