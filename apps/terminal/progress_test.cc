#include "apps/terminal/progress.h"

#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

ProgressState Reading(int64_t done, int64_t total, double seconds) {
  return {"reading", "tokens", "tok/s", done, total, seconds};
}

TEST(ProgressLineTest, SaysHowFarHowFastAndHowLong) {
  EXPECT_EQ(ProgressLine(Reading(3412, 7012, 1.8), 80),
            "reading 3,412 / 7,012 tokens  48%  1,895 tok/s  2 s left");
}

TEST(ProgressLineTest, NoRateBeforeThereIsOne) {
  EXPECT_EQ(ProgressLine(Reading(12, 7012, 0.1), 80),
            "reading 12 / 7,012 tokens  0%");
  EXPECT_EQ(ProgressLine(Reading(0, 7012, 60), 80),
            "reading 0 / 7,012 tokens  0%");
}

TEST(ProgressLineTest, TimeIsLeftWithoutARate) {
  EXPECT_EQ(ProgressLine({"tg32", "runs", "", 2, 6, 1.0}, 80),
            "tg32 2 / 6 runs  33%  2 s left");
}

TEST(ProgressLineTest, NothingToDoIsNoDivision) {
  EXPECT_EQ(ProgressLine(Reading(0, 0, 1), 80), "reading 0 / 0 tokens");
}

TEST(ProgressLineTest, LongTimes) {
  EXPECT_EQ(ProgressLine(Reading(100, 9100, 1), 80),
            "reading 100 / 9,100 tokens  1%  100 tok/s  1 min 30 s left");
  EXPECT_EQ(ProgressLine(Reading(1, 7321, 1), 80),
            "reading 1 / 7,321 tokens  0%  1 tok/s  2 h 2 min left");
}

TEST(ProgressLineTest, StaysShorterThanTheTerminal) {
  const ProgressState state = Reading(3412, 7012, 1.8);
  const size_t whole = ProgressLine(state, 1000).size();
  for (int columns = 0; columns < 100; ++columns) {
    const size_t size = ProgressLine(state, columns).size();
    EXPECT_EQ(size, columns == 0 ? 0 : std::min(whole, size_t(columns - 1)));
  }
}

TEST(ProgressTest, DrawsNothingWhereItIsNotWanted) {
  Progress progress(/*wanted=*/false, "reading", "tokens", "tok/s");
  EXPECT_FALSE(progress.Callback());
  EXPECT_FALSE(progress.Callback(100));
  testing::internal::CaptureStderr();
  progress.Show(1, 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace tiercel::cli
