#include "kernels/token/law.h"

#include <cmath>
#include <limits>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/error.h"
#include "kernels/token/counts_for_test.h"

namespace tiercel {
namespace {

using ::testing::ElementsAre;

Law Make(const std::vector<float>& logits, const LawParams& params,
         const std::vector<int32_t>& recent = {}) {
  const auto stream = Stream::Create({.threads = 1});
  const absl::StatusOr<Law> law =
      MakeLaw(**stream, {.logits = logits.data(),
                         .vocab = static_cast<int64_t>(logits.size()),
                         .recent = recent.data(),
                         .num_recent = static_cast<int64_t>(recent.size()),
                         .law = params});
  EXPECT_TRUE(law.ok()) << law.status();
  return law.ok() ? *law : Law{};
}

std::map<int32_t, float> AsMap(const Law& law) {
  std::map<int32_t, float> map;
  for (size_t i = 0; i < law.ids.size(); ++i) {
    map[law.ids[i]] = law.probabilities[i];
  }
  return map;
}

// Probabilities 0.5, 0.25, 0.125, 0.125 of ids 2, 0, 1, 3.
const std::vector<float> kHalves = {std::log(2.0f), 0.0f, std::log(4.0f), 0.0f};

TEST(LawTest, GreedyTakesTheLowestIdOfEquals) {
  const Law law = Make({1, 3, 3, 2}, {.temperature = 0});
  EXPECT_THAT(law.ids, ElementsAre(1));
  EXPECT_THAT(law.probabilities, ElementsAre(1.0f));
}

TEST(LawTest, TemperatureOneIsTheSoftmax) {
  const auto map = AsMap(Make(kHalves, {.temperature = 1}));
  ASSERT_EQ(map.size(), 4u);
  EXPECT_NEAR(map.at(0), 0.25, 1e-6);
  EXPECT_NEAR(map.at(1), 0.125, 1e-6);
  EXPECT_NEAR(map.at(2), 0.5, 1e-6);
  EXPECT_NEAR(map.at(3), 0.125, 1e-6);
}

TEST(LawTest, TemperatureSharpensAndFlattens) {
  // At temperature 1/2 the weights are squared: 16 4 1 1 of 22.
  EXPECT_NEAR(AsMap(Make(kHalves, {.temperature = 0.5f})).at(2), 16.0 / 22,
              1e-6);
  // A temperature near 0 overflows nothing.
  EXPECT_NEAR(AsMap(Make({-90, 90}, {.temperature = 1e-30f})).at(1), 1, 1e-6);
}

TEST(LawTest, TopKKeepsTheLowestIdsOfEquals) {
  const auto map = AsMap(Make(kHalves, {.temperature = 1, .top_k = 3}));
  ASSERT_EQ(map.size(), 3u);
  EXPECT_NEAR(map.at(2), 4.0 / 7, 1e-6);
  EXPECT_NEAR(map.at(1), 1.0 / 7, 1e-6);
}

TEST(LawTest, TopPKeepsTheTokenThatCrosses) {
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .top_p = 0.49f}).ids.size(), 1u);
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .top_p = 0.51f}).ids.size(), 2u);
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .top_p = 0.8f}).ids.size(), 3u);
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .top_p = 0.99f}).ids.size(), 4u);
}

TEST(LawTest, TopPIsOfWhatTopKLeft) {
  // Of 4/6, 2/6 the first alone crosses 0.6; of the whole it would not.
  const LawParams params = {.temperature = 1, .top_k = 2, .top_p = 0.6f};
  EXPECT_THAT(Make(kHalves, params).ids, ElementsAre(2));
}

TEST(LawTest, MinPIsRelativeToTheGreatest) {
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .min_p = 0.51f}).ids.size(), 1u);
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .min_p = 0.49f}).ids.size(), 2u);
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .min_p = 0.24f}).ids.size(), 4u);
}

TEST(LawTest, RepeatPenaltyMovesLogitsTowardsLess) {
  const LawParams params = {.temperature = 0, .repeat_penalty = 2};
  EXPECT_THAT(Make({3, 2, -1}, params, {0}).ids, ElementsAre(1));
  // Once, however often the id occurred; ids of no token are ignored.
  EXPECT_THAT(Make({3, 1.4f, -1}, params, {0, 0, -1, 99}).ids, ElementsAre(0));
  // A negative logit is multiplied.
  EXPECT_THAT(Make({-1, -1.5f}, params, {0}).ids, ElementsAre(1));
}

TEST(LawTest, CutsAgreeWithAFullSort) {
  // Beyond the first sorted run of 256 candidates.
  std::vector<float> logits(5000);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 7919) % 5000) * 1e-4f;
  }
  std::vector<double> weights;
  double total = 0;
  for (float logit : logits) {
    weights.push_back(std::exp(static_cast<double>(logit)));
    total += weights.back();
  }
  std::sort(weights.rbegin(), weights.rend());
  for (float top_p : {0.01f, 0.3f, 0.9f}) {
    double kept = 0;
    size_t count = 0;
    while (kept < top_p * total) kept += weights[count++];
    const Law law = Make(logits, {.temperature = 1, .top_p = top_p});
    EXPECT_EQ(law.ids.size(), count) << top_p;
  }
}

TEST(LawTest, NonFiniteLogitsAreAnError) {
  const auto stream = Stream::Create({.threads = 1});
  for (float bad : {std::numeric_limits<float>::quiet_NaN(),
                    std::numeric_limits<float>::infinity()}) {
    const std::vector<float> logits = {0, bad};
    const auto law = MakeLaw(**stream, {.logits = logits.data(),
                                        .vocab = 2,
                                        .recent = nullptr,
                                        .num_recent = 0,
                                        .law = {}});
    EXPECT_EQ(CodeOf(law.status()), "non_finite");
  }
}

TEST(LawTest, ParametersAreChecked) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const LawParams& bad : std::vector<LawParams>{
           {.temperature = -1},
           {.temperature = nan},
           {.temperature = 1e30f},
           {.top_k = -5},
           {.top_p = 0},
           {.top_p = 2},
           {.top_p = nan},
           {.min_p = -0.1f},
           {.min_p = 1.1f},
           {.repeat_penalty = 0},
           {.repeat_penalty = nan},
       }) {
    EXPECT_EQ(CodeOf(ValidateLawParams(bad)), "invalid_sampling");
  }
  EXPECT_TRUE(ValidateLawParams({}).ok());
}

// The seeds are fixed, so this passes or fails once and for all.
TEST(LawTest, DrawsFollowTheLaw) {
  // One of four is rare, which noise of few bits never draws.
  const std::vector<float> rare = {0, -8, 1, 0.5f};
  // Steps of a half and of a hundredth, not in the order of their ids.
  std::vector<float> few(12);
  for (size_t i = 0; i < few.size(); ++i) {
    few[i] = static_cast<float>((i ^ 1) * 11 % few.size()) * 0.5f;
  }
  std::vector<float> many(300);
  for (size_t i = 0; i < many.size(); ++i) {
    many[i] = static_cast<float>(i * 7919 % many.size()) * 0.01f;
  }
  constexpr double kVariation = 0.003;
  const struct {
    Law law;
    size_t outcomes;
    int64_t draws;
  } cases[] = {
      {Make(rare, {.temperature = 1}), 4, SamplesFor(4, kVariation)},
      {Make(few, {.temperature = 1, .top_k = 8, .top_p = 0.9f}), 5,
       SamplesFor(5, kVariation)},
      {Make(many, {.temperature = 0.05f, .top_p = 0.8f}), 9, 50'000},
      {Make(many, {.temperature = 3, .min_p = 0.71f}), 103, 5000},
  };
  for (const auto& [law, outcomes, draws] : cases) {
    ASSERT_EQ(law.ids.size(), outcomes);
    std::map<int32_t, double> exact;
    for (const auto& [id, p] : AsMap(law)) exact[id] = p;
    std::map<int32_t, int64_t> counts;
    // Half of them at other positions, half with other seeds.
    for (int64_t i = 0; i <= draws / 2; ++i) {
      ++counts[Draw(law, /*seed=*/7, i)];
      ++counts[Draw(law, static_cast<uint64_t>(i), /*position=*/-1)];
    }
    const double variation = ExpectCounts(exact, counts);
    if (draws > 1'000'000) {
      EXPECT_LT(variation, kVariation);
    }
  }
}

TEST(LawTest, NoiseBelongsToSeedPositionAndToken) {
  const Law law = Make(kHalves, {.temperature = 1});
  // To every bit of them.
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t other = uint64_t{1} << bit;
    int by_seed = 0;
    int by_position = 0;
    for (uint64_t i = 0; i < 64; ++i) {
      const int32_t drawn = Draw(law, i, 1000);
      EXPECT_EQ(Draw(law, i, 1000), drawn);
      by_seed += Draw(law, i ^ other, 1000) != drawn;
      by_position += Draw(law, i, static_cast<int64_t>(1000 ^ other)) != drawn;
    }
    EXPECT_GT(by_seed, 10) << bit;
    EXPECT_GT(by_position, 10) << bit;
  }
  // Coupling: a token that wins keeps winning when rivals leave the law.
  for (int i = 0; i < 64; ++i) {
    const int32_t winner = Draw(law, 1, i);
    Law fewer;
    for (size_t j = 0; j < law.ids.size(); ++j) {
      if (law.ids[j] != winner && fewer.ids.size() >= 1) continue;
      fewer.ids.push_back(law.ids[j]);
      fewer.probabilities.push_back(law.probabilities[j]);
    }
    EXPECT_EQ(Draw(fewer, 1, i), winner);
  }
}

}  // namespace
}  // namespace tiercel
