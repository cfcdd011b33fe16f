#include "drafts/draft_length.h"

#include <cmath>

#include "gtest/gtest.h"

namespace tiercel {
namespace {

TEST(DraftLengthTest, FixedStays) {
  for (int64_t tokens : {1, 7, 63}) {
    DraftLength length = DraftLength::Fixed(tokens);
    EXPECT_EQ(length.cost_ratio(), 0);
    for (int round = 0; round < 5; ++round) {
      EXPECT_EQ(length.Next(), tokens);
      length.Count(tokens, round % 2);
    }
  }
}

TEST(DraftLengthTest, AdaptiveIsTheBestForTheAcceptance) {
  const auto best = [](double ratio, double a) {
    int64_t best_length = 0;
    double best_rate = 0;
    for (int64_t n = 1; n <= 63; ++n) {
      const double rate = (1 - std::pow(a, static_cast<double>(n + 1))) /
                          (1 - a) / (static_cast<double>(n) + ratio);
      if (rate > best_rate) {
        best_rate = rate;
        best_length = n;
      }
    }
    return best_length;
  };
  for (double ratio : {0.5, 4.0, 20.0, 100.0}) {
    // Nine of ten checked tokens hold: each block has nine and a rejected one.
    DraftLength length = DraftLength::Adaptive(ratio);
    for (int round = 0; round < 400; ++round) length.Count(16, 9);
    EXPECT_NEAR(static_cast<double>(length.Next()),
                static_cast<double>(best(ratio, 0.9)), 1)
        << ratio;
    // Half of the checked tokens hold.
    for (int round = 0; round < 400; ++round) length.Count(16, 1);
    EXPECT_EQ(length.Next(), best(ratio, 0.5)) << ratio;
    // No token holds: one is still tried each time, or nothing would be learnt.
    for (int round = 0; round < 400; ++round) length.Count(16, 0);
    EXPECT_EQ(length.Next(), 1) << ratio;
    // All tokens hold: the longest block is best, unless a drafted token costs
    // more than a check.
    for (int round = 0; round < 400; ++round) length.Count(16, 16);
    EXPECT_EQ(length.Next(), ratio > 1 ? DraftLength::kMost : 1) << ratio;
  }
}

// A few blocks outweigh all that was before, since the text changes.
TEST(DraftLengthTest, AFewBlocksChangeIt) {
  DraftLength length = DraftLength::Adaptive(10);
  EXPECT_GT(length.Next(), 4);
  for (int round = 0; round < 20; ++round) length.Count(length.Next(), 0);
  EXPECT_EQ(length.Next(), 1);
  for (int round = 0; round < 20; ++round) {
    length.Count(length.Next(), length.Next());
  }
  EXPECT_GT(length.Next(), 16);
}

// The ratio that was given stays; without one there is ours until one is
// measured.
TEST(DraftLengthTest, AnAdaptiveOneMayTakeItsRatioLater) {
  EXPECT_FALSE(DraftLength::Fixed(4).wants_ratio());
  EXPECT_FALSE(DraftLength::Adaptive(3).wants_ratio());
  DraftLength length = DraftLength::Adaptive();
  EXPECT_TRUE(length.wants_ratio());
  EXPECT_EQ(length.cost_ratio(), 8);
  length.TakeRatio(100);
  EXPECT_EQ(length.Next(), DraftLength::Adaptive(100).Next());
  EXPECT_NE(length.Next(), DraftLength::Adaptive().Next());
}

TEST(DraftLengthTest, MostIsTheLongestThatItMayReach) {
  EXPECT_EQ(DraftLength::Fixed(4).Most(), 4);
  EXPECT_EQ(DraftLength::Adaptive(3).Most(), DraftLength::kMost);
}

TEST(DraftLengthTest, NothingDraftedTellsNothing) {
  DraftLength length = DraftLength::Adaptive(10);
  const int64_t before = length.Next();
  for (int round = 0; round < 50; ++round) length.Count(0, 0);
  EXPECT_EQ(length.Next(), before);
}

}  // namespace
}  // namespace tiercel
