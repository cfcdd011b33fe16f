// The position where an answer begins, and the positions that exist in all
// layers.

#include "runtime/session/sequence_extent.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"

namespace tiercel::sequence_extent_test {
namespace {

using Ids = std::vector<int32_t>;
using ::testing::ElementsAre;

constexpr PositionRange From(int64_t begin) { return {begin, kAllPositions}; }

TEST(SequenceExtentTest, TheTailIsTheTemplatesHeader) {
  const Ids header = {7, 8, 9};
  const auto answer_begin = [&](const Ids& tokens, int64_t tail) {
    SequenceExtent extent({.full_layers = 3, .tail = tail}, header,
                          /*begin=*/100);
    EXPECT_TRUE(extent.BeginAnswer(tokens, 100).ok());
    return extent.answer_begin();
  };
  EXPECT_EQ(answer_begin({1, 2, 3, 7, 8, 9}, 0), 103);
  EXPECT_EQ(answer_begin({1, 2, 7, 8, 9, 3}, 0), 105);  // in its middle
  EXPECT_EQ(answer_begin({1, 2, 6, 8, 9}, 0), 104);     // not all of it
  EXPECT_EQ(answer_begin({8, 9}, 0), 101);
  EXPECT_EQ(answer_begin({7, 8, 9}, 0), 100);
  EXPECT_EQ(answer_begin({1, 2, 3, 7, 8, 9}, 5), 101);
  SequenceExtent none({.full_layers = 3}, {}, 0);
  EXPECT_TRUE(none.BeginAnswer({1, 2, 3}, 0).ok());
  EXPECT_EQ(none.answer_begin(), 2);
}

TEST(SequenceExtentTest, SinksAndTheAnswerExistInAllLayers) {
  SequenceExtent extent({.full_layers = 3, .sinks = 2, .tail = 4}, {},
                        /*begin=*/10);
  const Ids tokens(20, 1);
  EXPECT_TRUE(extent.BeginAnswer(tokens, 10).ok());
  const View view = extent.Reads();
  EXPECT_EQ(view.full_layers, 3);
  EXPECT_EQ(view.sinks, 2);
  EXPECT_EQ(view.recent, 1);
  EXPECT_TRUE(view.shallow);
  EXPECT_THAT(view.pinned, ElementsAre(From(26)));
  // Three layers have all positions; five more have the sinks and the answer.
  EXPECT_EQ(extent.Entries(8, 30), 3 * 20 + 5 * (2 + 4));
  EXPECT_EQ(extent.Entries(8, 35), 3 * 25 + 5 * (2 + 9));
  EXPECT_EQ(extent.Entries(8, 20), 3 * 10 + 5 * 2);
  EXPECT_EQ(extent.Entries(8, 11), 8);
  EXPECT_FALSE(extent.HasAnswer(26));
  EXPECT_TRUE(extent.HasAnswer(27));
}

TEST(SequenceExtentTest, AnAnswerThatBeginsInTheSinksReadsEverything) {
  for (const int64_t tail : {18, 20}) {
    SequenceExtent extent({.full_layers = 3, .sinks = 2, .tail = tail}, {}, 10);
    EXPECT_TRUE(extent.BeginAnswer(Ids(20, 1), 10).ok());
    EXPECT_EQ(extent.Reads(), View::Full());
    EXPECT_EQ(extent.Entries(8, 30), 8 * 20);
  }
}

TEST(SequenceExtentTest, EarlierAnswersAreDroppedOrKept) {
  for (const bool keeps : {false, true}) {
    SequenceExtent extent(
        {.full_layers = 3, .sinks = 1, .tail = 2, .keeps_answers = keeps}, {},
        0);
    EXPECT_TRUE(extent.BeginAnswer(Ids(10, 1), 0).ok());
    EXPECT_TRUE(extent.BeginAnswer(Ids(20, 1), 14).ok());
    EXPECT_TRUE(extent.BeginAnswer(Ids(40, 1), 25).ok());
    if (!keeps) {
      EXPECT_THAT(extent.Reads().pinned, ElementsAre(From(38)));
      EXPECT_EQ(extent.Entries(5, 40), 3 * 40 + 2 * (1 + 2));
      continue;
    }
    EXPECT_THAT(
        extent.Reads().pinned,
        ElementsAre(PositionRange{8, 14}, PositionRange{18, 25}, From(38)));
    EXPECT_EQ(extent.Entries(5, 40), 3 * 40 + 2 * (1 + 6 + 7 + 2));
    // Positions that are cut off do not come back.
    extent.Truncate(20);
    EXPECT_THAT(
        extent.Reads().pinned,
        ElementsAre(PositionRange{8, 14}, PositionRange{18, 20}, From(20)));
    EXPECT_EQ(extent.Entries(5, 20), 3 * 20 + 2 * (1 + 6 + 2));
    extent.Truncate(12);
    EXPECT_THAT(extent.Reads().pinned,
                ElementsAre(PositionRange{8, 12}, From(12)));
  }
}

TEST(SequenceExtentTest, ATailLongerThanThePromptIsRefused) {
  SequenceExtent extent({.full_layers = 3, .tail = 11}, {}, 0);
  EXPECT_EQ(ClassOf(extent.BeginAnswer(Ids(10, 1), 0)), ErrorClass::kUsage);
  EXPECT_TRUE(extent.BeginAnswer(Ids(11, 1), 0).ok());
}

}  // namespace
}  // namespace tiercel::sequence_extent_test
