#include "kernels/token/log_probs.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::IsEmpty;

// The weights are 2, 1, 4 and 1, of 8 in all.
const std::vector<float> kEighths = {std::log(2.0f), 0.0f, std::log(4.0f),
                                     0.0f};

TEST(LogProbsTest, AreTheLogarithmOfTheSoftmax) {
  const TokenLogProbs made = LogProbsOf(kEighths, 1, 3);
  EXPECT_NEAR(made.log_prob, std::log(1.0 / 8), 1e-6);
  // The lowest id of equals comes first.
  EXPECT_THAT(made.top_ids, ElementsAre(2, 0, 1));
  EXPECT_THAT(made.top_log_probs,
              ElementsAre(FloatNear(std::log(0.5f), 1e-6f),
                          FloatNear(std::log(0.25f), 1e-6f),
                          FloatNear(std::log(0.125f), 1e-6f)));
}

TEST(LogProbsTest, AsManyAsAskedForAtMost) {
  EXPECT_THAT(LogProbsOf(kEighths, 2, 0).top_ids, IsEmpty());
  EXPECT_NEAR(LogProbsOf(kEighths, 2, 0).log_prob, std::log(0.5), 1e-6);
  EXPECT_THAT(LogProbsOf(kEighths, 2, 20).top_ids, ElementsAre(2, 0, 1, 3));
}

TEST(LogProbsTest, GreatLogitsAndUnlikelyTokensStayFinite) {
  const TokenLogProbs made =
      LogProbsOf(std::vector{3e38f, -3e38f, 3e38f}, 0, 1);
  EXPECT_NEAR(made.log_prob, 0, 1e-6);
  EXPECT_NEAR(LogProbsOf(std::vector{500.0f, -500.0f}, 1, 1).log_prob, -1000,
              1e-3);
}

}  // namespace
}  // namespace tiercel
