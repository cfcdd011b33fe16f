#include "runtime/plan/pipeline.h"

#include "gtest/gtest.h"

namespace tiercel {
namespace {

constexpr double kTiny = 1e-9;

TEST(PipelineTest, ALinkBoundStepTakesWhatItsBytesTake) {
  // The link is busy all the time: a layer computes faster than pages arrive.
  EXPECT_NEAR(
      StepSeconds(30, {.compute_s = 0.1, .up_s = 1.0}, /*between_s=*/0.5), 30.0,
      kTiny);
}

TEST(PipelineTest, AComputeBoundStepHidesItsCopies) {
  EXPECT_NEAR(StepSeconds(30, {.compute_s = 1.0, .up_s = 0.4}, 0.5), 30.5,
              kTiny);
  EXPECT_NEAR(StepSeconds(30, {.compute_s = 1.0, .up_s = 1.0}, 0.0), 30.0,
              kTiny);
}

TEST(PipelineTest, BetweenStepsTheLinkBringsTwoLayersAndNoMore) {
  // A gap longer than two layers' copies leaves the link idle. By hand, with
  // compute c, copy x > c, gap g > 2 x: layer 2 is asked for at c, so it
  // arrives at c + x, and so on; the last layer begins at (L - 2) x + c.
  const double c = 0.1, x = 1.0, g = 10.0;
  EXPECT_NEAR(StepSeconds(6, {.compute_s = c, .up_s = x}, g), 4 * x + c + c + g,
              kTiny);
}

TEST(PipelineTest, APromptComputesWhileItsPagesLeave) {
  EXPECT_NEAR(PromptSeconds(10, {.compute_s = 1.0, .down_s = 0.25}), 10.25,
              kTiny);
  // On a slow link a layer waits until its buffer's earlier pages have left.
  EXPECT_NEAR(PromptSeconds(10, {.compute_s = 1.0, .down_s = 3.0}), 31.0,
              kTiny);
}

// Hidden states go before pages, which have the rest of the link's time.
TEST(PipelineTest, HiddenStatesHideBehindComputing) {
  EXPECT_NEAR(
      PromptSeconds(10, {.compute_s = 1.0, .down_s = 0.25, .states_s = 0.7}),
      10.25, kTiny);
  EXPECT_NEAR(PromptSeconds(10, {.compute_s = 1.0, .states_s = 3.0}), 30.0,
              kTiny);
  // A link whose copies take longer than the computing is busy all the time.
  EXPECT_NEAR(
      PromptSeconds(10, {.compute_s = 1.0, .down_s = 0.5, .states_s = 0.8}),
      10 * 1.3 + 0.2, 0.3);
}

TEST(PipelineTest, RowsAddedToATextReadItFirst) {
  EXPECT_NEAR(PromptSeconds(2, {.compute_s = 1.0, .up_s = 3.0}), 7.0, kTiny);
  EXPECT_NEAR(PromptSeconds(1, {.compute_s = 1.0, .up_s = 3.0}), 4.0, kTiny);
}

}  // namespace
}  // namespace tiercel
