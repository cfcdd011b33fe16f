#include "kernels/device/cpu/probe.h"

#include <vector>

#include "gtest/gtest.h"
#include "kernels/device/cpu/probe_isas.h"
#include "kernels/system/clock_for_test.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

TEST(SpreadTest, IsTheMiddleOverTheLeast) {
  EXPECT_EQ(SpreadOf({3}), 0);
  EXPECT_EQ(SpreadOf({4, 4, 4}), 0);
  EXPECT_EQ(SpreadOf({7, 4, 6}), 0.5);
  // One slow run is an outlier; several slow runs are due to other work.
  EXPECT_EQ(SpreadOf({4, 4, 100, 4, 4}), 0);
  EXPECT_EQ(SpreadOf({8, 4, 100, 4, 8}), 1);
  EXPECT_EQ(SpreadOf({4, 6}), 0.5);
}

// The loops return the values that they have if every operation is done.
TEST(ProbeTest, LoopsDoTheirWork) {
  const std::vector<float> ones(256, 1.0f);
  for (Isa isa : SupportedIsas()) {
    SCOPED_TRACE(NameOf(isa));
    EXPECT_EQ(kProbeRead[isa](ones.data(), 256), 256.0f);
    // Every chain converges to 2.
    EXPECT_EQ(kProbeFma[isa](100), 16 * kProbeChains * 2.0f);
    // Chain i is i + 4 per step, in 16 lanes.
    EXPECT_EQ(kProbeInt8[isa](10),
              16.0f * (10 * 4 * kProbeChains +
                       kProbeChains * (kProbeChains - 1) / 2));
  }
}

// On this clock every run but the best takes 8 s.
TEST(ProbeTest, PeaksAreWhatTheBestRunDoesInASecond) {
  constexpr int kThreads = 2;
  const auto stream = Stream::Create({.threads = kThreads});
  ASSERT_TRUE(stream.ok()) << stream.status();
  int readings = 0;
  ManualClock clock([&](ManualClock& now) {
    // Each run is read twice: the third of each peak takes 0.5 s.
    const bool best = readings == 5 || readings == 17 || readings == 41;
    now.Pass(readings++ % 2 == 0 ? 1000 : best ? 0.5 : 8);
  });
  uint64_t calls = 0;
  const absl::StatusOr<Peaks> peaks = MeasurePeaks(
      **stream,
      [&](uint64_t done, uint64_t total) {
        EXPECT_EQ(done, calls++);
        EXPECT_LT(done, total);
        return true;
      },
      clock);
  ASSERT_TRUE(peaks.ok()) << peaks.status();
  EXPECT_EQ(peaks->read_bytes_per_s, 2.0 * (256 << 20));
  // A step has 16 float lanes or 64 bytes, and a multiplication and an addition
  // for each.
  const double steps = 2.0 * kThreads * 400'000 * kProbeChains;
  EXPECT_EQ(peaks->f32_ops_per_s, steps * 16 * 2);
  EXPECT_EQ(peaks->int8_ops_per_s, steps * 64 * 2);
  EXPECT_EQ(peaks->read_spread, (8 - 0.5) / 0.5);

  // It can be stopped after each of its runs, and makes no further one.
  for (const uint64_t last : {uint64_t{0}, calls / 2, calls - 1}) {
    uint64_t more = 0;
    const absl::StatusOr<Peaks> stopped = MeasurePeaks(
        **stream, [&](uint64_t, uint64_t) { return more++ < last; });
    EXPECT_EQ(ClassOf(stopped.status()), ErrorClass::kCancelled) << last;
    EXPECT_EQ(more, last + 1);
  }
}

}  // namespace
}  // namespace tiercel
