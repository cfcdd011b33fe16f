#include "kernels/layer/expert_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/system/testing.h"
#include "lib/status/error.h"
#include "tests/setup/draws.h"

namespace tiercel::expert_choice_test {
namespace {

using testing::ElementsAre;

struct Choice {
  std::vector<int32_t> chosen;
  std::vector<float> shares;
};

Choice Choose(Stream& stream, const std::vector<float>& logits, int experts,
              int used, bool normed) {
  const auto rows = static_cast<int64_t>(logits.size()) / experts;
  OnDevice<float> in(stream, logits);
  OnDevice<int32_t> chosen(
      stream, std::vector<int32_t>(static_cast<size_t>(rows * used), -1));
  OnDevice<float> shares(
      stream, std::vector<float>(static_cast<size_t>(rows * used), kPoison));
  const absl::Status status = ExpertChoice(stream, {.logits = in.data(),
                                                    .rows = rows,
                                                    .experts = experts,
                                                    .used = used,
                                                    .normed = normed,
                                                    .chosen = chosen.data(),
                                                    .shares = shares.data()});
  EXPECT_TRUE(status.ok()) << status;
  return {chosen.Read(), shares.Read()};
}

class ExpertChoiceTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped()) stream_ = NewStream(3);
  }

  const std::unique_ptr<Stream> ref_ = MakeStream(DeviceKind::kRef);
  std::unique_ptr<Stream> stream_;
};
INSTANTIATE_TEST_SUITE_P(Backends, ExpertChoiceTest,
                         testing::ValuesIn(Backends()), NameOfBackend);

// Probabilities of 1/10, 4/10, 2/10 and 3/10.
TEST_P(ExpertChoiceTest, IsTheGreatestOfASoftmax) {
  const std::vector<float> logits = {std::log(1.0f), std::log(4.0f),
                                     std::log(2.0f), std::log(3.0f)};
  const Choice plain = Choose(*stream_, logits, 4, 2, /*normed=*/false);
  EXPECT_THAT(plain.chosen, ElementsAre(1, 3));
  EXPECT_NEAR(plain.shares[0], 0.4, 1e-6);
  EXPECT_NEAR(plain.shares[1], 0.3, 1e-6);
  const Choice normed = Choose(*stream_, logits, 4, 2, /*normed=*/true);
  EXPECT_THAT(normed.chosen, ElementsAre(1, 3));
  EXPECT_NEAR(normed.shares[0], 4.0 / 7, 1e-6);
  EXPECT_NEAR(normed.shares[1], 3.0 / 7, 1e-6);
}

TEST_P(ExpertChoiceTest, OfEqualLogitsTheLowerIndices) {
  const std::vector<float> logits = {0, 1,     0, 1,  1, -0.0f,  // a row
                                     0, -0.0f, 0, -1, 2, 0};
  EXPECT_THAT(Choose(*stream_, logits, 6, 2, true).chosen,
              ElementsAre(1, 3, 0, 4));
  EXPECT_THAT(Choose(*stream_, logits, 6, 4, true).chosen,
              ElementsAre(0, 1, 3, 4, 0, 1, 2, 4));
}

// Logits are rounded, so that many are equal.
TEST_P(ExpertChoiceTest, EqualsReference) {
  std::mt19937 random(5);
  NormalFloats normal(0.0f, 3.0f);
  for (const int experts : {1, 5, 16, 17, 128, 1024}) {
    for (const int64_t rows : Fewer({1, 3, 40}, {3})) {
      std::vector<float> logits(static_cast<size_t>(rows * experts));
      for (float& x : logits) x = std::nearbyint(normal(random) * 8) / 8;
      for (const int used : {1, 2, 8, experts}) {
        if (used > experts) continue;
        const bool normed = (used + rows) % 2 == 0;
        const Choice expected = Choose(*ref_, logits, experts, used, normed);
        const Choice got = Choose(*stream_, logits, experts, used, normed);
        ASSERT_EQ(got.chosen, expected.chosen) << experts << " " << used;
        for (size_t i = 0; i < got.shares.size(); ++i) {
          ASSERT_NEAR(got.shares[i], expected.shares[i], 1e-6);
        }
        if (!HasFma()) continue;
        ASSERT_TRUE(SameBits(got.shares, expected.shares))
            << experts << " " << used;
      }
    }
  }
}

// A far smaller logit has a share of 1e-38 at most, no less than 0.
TEST_P(ExpertChoiceTest, FarLogits) {
  const Choice choice =
      Choose(*stream_, {1e30f, -1e30f, 0.0f}, 3, 3, /*normed=*/false);
  EXPECT_THAT(choice.chosen, ElementsAre(0, 1, 2));
  EXPECT_EQ(choice.shares[0], 1.0f);
  for (const size_t i : {1, 2}) {
    EXPECT_GE(choice.shares[i], 0.0f);
    EXPECT_LE(choice.shares[i], 2e-38f);
  }
}

TEST_P(ExpertChoiceTest, ANaNOrAnInfinityMakesSharesNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {kPoison, -kPoison, kInf}) {
    for (const size_t at : {0, 3, 6}) {
      std::vector<float> logits = {3, 1, 4, 1, 5, 9, 2};
      logits[at] = bad;
      const Choice choice = Choose(*stream_, logits, 7, 3, /*normed=*/true);
      for (const float share : choice.shares) EXPECT_TRUE(std::isnan(share));
      // The experts are three of those that there are.
      EXPECT_TRUE(std::is_sorted(choice.chosen.begin(), choice.chosen.end(),
                                 std::less_equal<>()));
      EXPECT_GE(choice.chosen.front(), 0);
      EXPECT_LT(choice.chosen.back(), 7);
    }
  }
}

TEST_P(ExpertChoiceTest, RefusesWrongParameters) {
  float one = 1.0f;
  int32_t chosen = 0;
  const auto code = [&](int64_t rows, int experts, int used, float* logits) {
    return CodeOf(
        ExpertChoice(*stream_, {InPlace(logits), rows, experts, used, true,
                                InPlace(&chosen), InPlace(&one)}));
  };
  EXPECT_EQ(code(-1, 1, 1, &one), "invalid_sizes");
  EXPECT_EQ(code(1, 0, 1, &one), "invalid_sizes");
  EXPECT_EQ(code(1, 1025, 1, &one), "invalid_sizes");
  EXPECT_EQ(code(1, 4, 0, &one), "invalid_sizes");
  EXPECT_EQ(code(1, 4, 5, &one), "invalid_sizes");
  EXPECT_EQ(code(1, 1, 1, nullptr), "invalid_argument");
  EXPECT_TRUE(
      ExpertChoice(*stream_, {nullptr, 0, 1, 1, true, nullptr, nullptr}).ok());
}

}  // namespace
}  // namespace tiercel::expert_choice_test
