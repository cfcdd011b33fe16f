#include "apps/terminal/progress.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel::cli {
namespace {

using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::Lt;
using ::testing::SizeIs;

ProgressState Reading(int64_t done, int64_t total, double seconds) {
  return {"reading", "tokens", "tok/s", done, total, seconds, "", ""};
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
  EXPECT_EQ(ProgressLine({"tg32", "runs", "", 2, 6, 1.0, "", ""}, 80),
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

TEST(ProgressLineTest, TheTimeLeftIsWhatStays) {
  const ProgressState state = Reading(12345, 107012, 6.5);
  EXPECT_EQ(ProgressLine(state, 80),
            "reading 12,345 / 107,012 tokens  11%  1,899 tok/s  50 s left");
  EXPECT_EQ(ProgressLine(state, 60),
            "reading 12,345 / 107,012 tokens  11%  50 s left");
  EXPECT_EQ(ProgressLine(state, 40), "reading  11%  50 s left");
  EXPECT_EQ(ProgressLine(state, 20), "11%  50 s left");
  EXPECT_EQ(ProgressLine(state, 11), "50 s left");
  for (int columns = 0; columns < 100; ++columns) {
    const std::string line = ProgressLine(state, columns);
    EXPECT_LT(line.size(), std::max<size_t>(1, size_t(columns)));
    EXPECT_THAT(line, AnyOf(EndsWith("50 s left"), SizeIs(Lt(9u))));
  }
}

TEST(ProgressLineTest, WithoutATimeLeftItIsCut) {
  const ProgressState state = Reading(3412, 7012, 0.1);
  const std::string whole = ProgressLine(state, 1000);
  for (int columns = 0; columns < 100; ++columns) {
    EXPECT_EQ(ProgressLine(state, columns),
              whole.substr(0, size_t(std::max(columns - 1, 0))));
  }
}

TEST(ProgressLineTest, APartAndItsTitle) {
  ProgressState state = Reading(12345, 107012, 6.5);
  state.part = "part 3 of 48";
  state.title = "El ingenioso hidalgo \u732b\u304c\u6d77";
  const std::string end = " 12,345 / 107,012 tokens  11%  1,899 tok/s  ";
  EXPECT_EQ(ProgressLine(state, 200),
            "part 3 of 48, " + state.title + ": reading" + end + "50 s left");
  EXPECT_EQ(ProgressLine(state, 80),
            "part 3 of 48, " + state.title + ": reading  11%  50 s left");
  EXPECT_EQ(ProgressLine(state, 60),
            "part 3 of 48, El ingenioso hida...: reading  11%  50 s left");
  EXPECT_EQ(ProgressLine(state, 45), "part 3 of 48: reading  11%  50 s left");
  EXPECT_EQ(ProgressLine(state, 30), "part 3 of 48  11%  50 s left");
  EXPECT_EQ(ProgressLine(state, 20), "11%  50 s left");
  // Wide characters are cut by the columns that they take.
  state.title = "\u732b\u304c\u6d77\u3092\u898b\u305f\u3002\u732b\u304c";
  EXPECT_EQ(ProgressLine(state, 54),
            "part 3 of 48, \u732b\u304c\u6d77\u3092\u898b...: reading  11%  "
            "50 s left");
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
