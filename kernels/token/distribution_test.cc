#include "kernels/token/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/number/philox.h"
#include "kernels/number/reference_math.h"
#include "kernels/system/testing.h"
#include "kernels/token/counts_for_test.h"
#include "kernels/token/distribution_body.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Distribution Make(const std::vector<float>& logits,
                  const DistributionParams& params,
                  const std::vector<int32_t>& recent = {}) {
  const auto stream = Stream::Create({.threads = 1});
  const auto distributions = MakeDistributions(
      **stream, {.logits = logits.data(),
                 .rows = 1,
                 .vocab = static_cast<int64_t>(logits.size()),
                 .tokens = recent.data(),
                 .before = static_cast<int64_t>(recent.size()),
                 .distribution = params});
  EXPECT_TRUE(distributions.ok()) << distributions.status();
  return distributions.ok() ? distributions->front() : Distribution{};
}

std::map<int32_t, float> AsMap(const Distribution& distribution) {
  std::map<int32_t, float> map;
  for (size_t i = 0; i < distribution.ids.size(); ++i) {
    map[distribution.ids[i]] = distribution.probabilities[i];
  }
  return map;
}

// Ids 2, 0, 1 and 3 have the probabilities 0.5, 0.25, 0.125 and 0.125.
const std::vector<float> kHalves = {std::log(2.0f), 0.0f, std::log(4.0f), 0.0f};

TEST(DistributionTest, GreedyTakesTheLowestIdOfEquals) {
  const Distribution distribution = Make({1, 3, 3, 2}, {.temperature = 0});
  EXPECT_THAT(distribution.ids, ElementsAre(1));
  EXPECT_THAT(distribution.probabilities, ElementsAre(1.0f));
  std::vector<float> many(10'000, -1);  // has several ranges
  many[8000] = many[5000] = 3;
  many[100] = 2;
  EXPECT_THAT(Make(many, {.temperature = 0}).ids, ElementsAre(5000));
}

TEST(DistributionTest, AGreedyOneSaysWhichTokenCameSecond) {
  const DistributionParams seconds = {.temperature = 0, .keeps_second = true};
  const Distribution made = Make({1, 3, 2, 3 - std::log(3.0f)}, seconds);
  EXPECT_THAT(made.ids, ElementsAre(1));
  EXPECT_THAT(made.probabilities, ElementsAre(1.0f));
  EXPECT_EQ(made.second, 2);
  EXPECT_NEAR(made.second_share, 1 / (1 + std::exp(1.0f)), 1e-6);
  // The lowest id of equals is first, then the next.
  EXPECT_EQ(Make({1, 3, 3, 3}, seconds).second, 2);
  EXPECT_EQ(Make({1, 3, 3, 3}, seconds).second_share, 0.5f);
  EXPECT_EQ(Make({3, 1, 1}, seconds).second, 1);
  EXPECT_EQ(Make({3}, seconds).second, kNoToken);
  EXPECT_EQ(Make({1, 3, 2}, {.temperature = 0}).second, kNoToken);
  // There are several ranges: it is in the same one, before it or behind it.
  std::vector<float> many(10'000, -1);
  many[5000] = 3;
  EXPECT_EQ(Make(many, seconds).second, 0);
  for (const int32_t second : {9000, 20, 4999, 5001}) {
    many[static_cast<size_t>(second)] += 2.0f;
    if (second == 20) many[20] += 0.5f;
    if (second == 4999) many[4999] += 0.6f;
    if (second == 5001) many[5001] += 0.7f;
    EXPECT_EQ(Make(many, seconds).second, second);
  }
  // A token that must not be drawn is none.
  const std::vector<float> logits = {1, 3, 2, 0};
  const auto stream = Stream::Create({.threads = 1});
  const auto second = [&](const std::vector<int32_t>& never) {
    const auto both = MakeDistributions(**stream, {.logits = logits.data(),
                                                   .rows = 1,
                                                   .vocab = 4,
                                                   .tokens = nullptr,
                                                   .before = 0,
                                                   .distribution = seconds,
                                                   .never = &never});
    return both->front().second;
  };
  EXPECT_EQ(second({2}), 0);
  EXPECT_EQ(second({1}), 0);
  EXPECT_EQ(second({0, 2, 3}), kNoToken);
}

TEST(DistributionTest, TemperatureOneIsTheSoftmax) {
  const auto map = AsMap(Make(kHalves, {.temperature = 1}));
  ASSERT_EQ(map.size(), 4u);
  EXPECT_NEAR(map.at(0), 0.25, 1e-6);
  EXPECT_NEAR(map.at(1), 0.125, 1e-6);
  EXPECT_NEAR(map.at(2), 0.5, 1e-6);
  EXPECT_NEAR(map.at(3), 0.125, 1e-6);
}

TEST(DistributionTest, TemperatureSharpensAndFlattens) {
  // At temperature 1/2 the weights are squared: 16 4 1 1, in all 22.
  EXPECT_NEAR(AsMap(Make(kHalves, {.temperature = 0.5f})).at(2), 16.0 / 22,
              1e-6);
  // A temperature near 0 causes no overflow.
  EXPECT_NEAR(AsMap(Make({-90, 90}, {.temperature = 1e-30f})).at(1), 1, 1e-6);
}

TEST(DistributionTest, TopKKeepsTheLowestIdsOfEquals) {
  const auto map = AsMap(Make(kHalves, {.temperature = 1, .top_k = 3}));
  ASSERT_EQ(map.size(), 3u);
  EXPECT_NEAR(map.at(2), 4.0 / 7, 1e-6);
  EXPECT_NEAR(map.at(1), 1.0 / 7, 1e-6);
}

TEST(DistributionTest, TopPKeepsTheTokenThatCrosses) {
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .top_p = 0.49f}).ids.size(), 1u);
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .top_p = 0.51f}).ids.size(), 2u);
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .top_p = 0.8f}).ids.size(), 3u);
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .top_p = 0.99f}).ids.size(), 4u);
}

TEST(DistributionTest, TopPIsOfWhatTopKLeft) {
  // The first of 4/6 and 2/6 crosses 0.6; its share of all would not.
  const DistributionParams params = {
      .temperature = 1, .top_k = 2, .top_p = 0.6f};
  EXPECT_THAT(Make(kHalves, params).ids, ElementsAre(2));
}

TEST(DistributionTest, MinPIsRelativeToTheGreatest) {
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .min_p = 0.51f}).ids.size(), 1u);
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .min_p = 0.49f}).ids.size(), 2u);
  EXPECT_EQ(Make(kHalves, {.temperature = 1, .min_p = 0.24f}).ids.size(), 4u);
}

// The probabilities of a distribution, by id; NaN if it has no such token.
std::vector<float> ProbabilitiesOn(Stream& stream,
                                   const std::vector<float>& logits,
                                   const DistributionParams& params) {
  std::vector<float> probabilities(logits.size(), kPoison);
  const auto distributions =
      MakeDistributions(stream, {.logits = logits.data(),
                                 .rows = 1,
                                 .vocab = static_cast<int64_t>(logits.size()),
                                 .tokens = nullptr,
                                 .before = 0,
                                 .distribution = params});
  EXPECT_TRUE(distributions.ok()) << distributions.status();
  if (!distributions.ok()) return probabilities;
  for (const auto& [id, p] : AsMap(distributions->front())) {
    probabilities[static_cast<size_t>(id)] = p;
  }
  return probabilities;
}

class DistributionIsaTest : public testing::TestWithParam<Isa> {
 protected:
  std::unique_ptr<Stream> ref_ = MakeStream(DeviceKind::kRef, 1, GetParam());
  std::unique_ptr<Stream> cpu_ = MakeStream(DeviceKind::kCpu, 2, GetParam());
};
INSTANTIATE_TEST_SUITE_P(Isas, DistributionIsaTest,
                         testing::ValuesIn(SupportedIsas()), NameOfIsa);

// Vocabularies fill lanes, sums and ranges, or end within one.
TEST_P(DistributionIsaTest, EqualsReferenceAndSoftmax) {
  for (size_t vocab : {1, 15, 17, 255, 257, 4096, 9001}) {
    for (float temperature : {0.1f, 0.6f, 3.0f}) {
      std::vector<float> logits(vocab);
      for (size_t i = 0; i < vocab; ++i) {
        logits[i] = 7 - static_cast<float>(i * 7919 % vocab) * 80 /
                            static_cast<float>(vocab);
      }
      const DistributionParams params = {.temperature = temperature};
      const auto expected = ProbabilitiesOn(*ref_, logits, params);
      const auto got = ProbabilitiesOn(*cpu_, logits, params);
      double total = 0;
      for (float logit : logits) {
        total += std::exp((static_cast<double>(logit) - 7) /
                          static_cast<double>(temperature));
      }
      for (size_t i = 0; i < vocab; ++i) {
        EXPECT_EQ(got[i], expected[i]) << i << " of " << vocab;
        // The errors are two roundings of the exponent x, Exp and sixteen sums,
        // and weights below e^-87, which are left out.
        const double x = (static_cast<double>(logits[i]) - 7) /
                         static_cast<double>(temperature);
        const double exact = std::exp(x) / total;
        const double error = (2 - 2 * x + 2 + 16) * 0x1p-24;
        EXPECT_NEAR(static_cast<double>(got[i]), exact, exact * error + 2e-38)
            << i << " of " << vocab << " at " << temperature;
      }
    }
  }
}

// Weights are relative to the greatest logit of all, which is far above those
// of other ranges.
TEST_P(DistributionIsaTest, OneLogitTowersOverOtherRanges) {
  for (size_t at : {0, 4096, 9000}) {
    std::vector<float> logits(9001, -100);
    logits[at] = 200;
    for (Stream* stream : {ref_.get(), cpu_.get()}) {
      const auto distribution =
          ProbabilitiesOn(*stream, logits, {.temperature = 1});
      for (size_t i = 0; i < distribution.size(); ++i) {
        ASSERT_EQ(distribution[i], i == at ? 1.0f : 0.0f)
            << i << " beside " << at;
      }
    }
  }
}

// A logit that is not finite is found at every place.
TEST_P(DistributionIsaTest, FindsWhatIsNotFinite) {
  for (size_t vocab : {1, 16, 37}) {
    for (size_t at = 0; at < vocab; ++at) {
      for (float bad : {kPoison, std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity()}) {
        std::vector<float> logits(vocab, 1);
        logits[at] = bad;
        const MakeDistributionsParams params = {
            .logits = logits.data(),
            .rows = 1,
            .vocab = static_cast<int64_t>(vocab),
            .tokens = nullptr,
            .before = 0,
            .distribution = {}};
        EXPECT_EQ(CodeOf(MakeDistributions(*ref_, params).status()),
                  "non_finite");
        EXPECT_EQ(CodeOf(MakeDistributions(*cpu_, params).status()),
                  "non_finite");
      }
    }
  }
}

// The greatest and its equals always stay, whatever other cuts there are.
TEST(DistributionTest, MinPOfOneKeepsTheGreatest) {
  for (const int top_k : {0, 3}) {
    const DistributionParams params = {
        .temperature = 1, .top_k = top_k, .min_p = 1};
    EXPECT_THAT(Make({1, 3, 3, 2}, params).ids, UnorderedElementsAre(1, 2));
  }
}

TEST(DistributionTest, RepeatPenaltyLooksBack256Tokens) {
  const DistributionParams params = {.temperature = 0, .repeat_penalty = 2};
  std::vector<int32_t> recent(257, 2);
  recent[1] = 0;
  EXPECT_THAT(Make({3, 2, -1}, params, recent).ids, ElementsAre(1));
  std::swap(recent[0], recent[1]);
  EXPECT_THAT(Make({3, 2, -1}, params, recent).ids, ElementsAre(0));
}

// DRY counts the whole answer and nothing before it, after the repeat penalty.
TEST(DistributionTest, DryLooksAtTheAnswer) {
  const DistributionParams params = {.temperature = 0,
                                     .dry = {.multiplier = 1}};
  const std::vector<float> logits = {1, 3, 2.9f, 2.4f};
  // In "0 2 1 ... 0 2" two tokens are repeated, which 1 followed.
  const std::vector<int32_t> tokens = {0, 2, 1, 3, 0, 2};
  const auto stream = Stream::Create({.threads = 1});
  const auto likeliest = [&](const DistributionParams& distribution,
                             int64_t answer_begin) {
    const auto distributions =
        MakeDistributions(**stream, {.logits = logits.data(),
                                     .rows = 1,
                                     .vocab = 4,
                                     .tokens = tokens.data(),
                                     .before = std::ssize(tokens),
                                     .distribution = distribution,
                                     .answer_begin = answer_begin});
    EXPECT_TRUE(distributions.ok()) << distributions.status();
    return distributions->front().ids.front();
  };
  EXPECT_EQ(likeliest(params, 0), 2);
  EXPECT_EQ(likeliest(params, 1), 1);
  EXPECT_EQ(likeliest(params, 6), 1);
  // The repeat penalty gives 3 / 2, 2.9 / 2 and 2.4 / 2, then DRY takes 1.
  const DistributionParams both = {
      .temperature = 0, .repeat_penalty = 2, .dry = params.dry};
  EXPECT_EQ(likeliest(both, 0), 2);
  EXPECT_EQ(likeliest(both, 1), 1);
  EXPECT_EQ(CodeOf(MakeDistributions(**stream, {.logits = logits.data(),
                                                .rows = 1,
                                                .vocab = 4,
                                                .tokens = tokens.data(),
                                                .before = 6,
                                                .distribution = params,
                                                .answer_begin = 7})
                       .status()),
            "invalid_argument");
}

// A token with a huge penalty has the weight 0, at any temperature, with and
// without top-k.
TEST(DistributionTest, AGreatDryPenaltyIsNoInfinity) {
  const std::vector<int32_t> text(400, 1);
  for (const float temperature : {0.0f, 1e-30f, 0.5f, 100.0f}) {
    for (const int top_k : {0, 2}) {
      const Distribution distribution =
          Make({3, 5, 2, 1},
               {.temperature = temperature,
                .top_k = top_k,
                .dry = {.multiplier = 100, .base = 100}},
               text);
      const auto map = AsMap(distribution);
      if (map.contains(1)) {
        EXPECT_EQ(map.at(1), 0) << temperature;
      }
      EXPECT_GT(map.at(0), temperature > 50 ? 0.3 : 0.8) << temperature;
    }
  }
}

// Most of a vocabulary is far below the bound of min-p, and some of it is near.
TEST(DistributionTest, MinPAgreesWithEveryWeight) {
  constexpr size_t kVocab = 9001;
  for (const float temperature : {0.6f, 1.0f, 7.0f}) {
    for (const float min_p : {1e-8f, 0.01f, 0.5f}) {
      // The weights of every third are within 0.2 % of min-p.
      std::vector<float> logits(kVocab);
      for (size_t i = 0; i < kVocab; ++i) {
        const auto spread = static_cast<float>(i * 7919 % kVocab) / kVocab;
        logits[i] = 5 + temperature * (i % 3 == 0 ? std::log(min_p) -
                                                        0.002f * spread + 0.001f
                                                  : -40 * spread);
      }
      logits[7] = 5;
      std::map<int32_t, double> weights;
      double total = 0;
      for (size_t i = 0; i < kVocab; ++i) {
        const float weight = ExpLane((logits[i] - 5) / temperature);
        if (weight < min_p) continue;
        total += weights[static_cast<int32_t>(i)] = static_cast<double>(weight);
      }
      const DistributionParams params = {.temperature = temperature,
                                         .min_p = min_p};
      const std::map<int32_t, float> distribution = AsMap(Make(logits, params));
      ASSERT_EQ(distribution.size(), weights.size())
          << temperature << " " << min_p;
      for (const auto& [id, weight] : weights) {
        ASSERT_TRUE(distribution.contains(id));
        EXPECT_FLOAT_EQ(distribution.at(id),
                        static_cast<float>(weight / total));
      }
    }
  }
}

TEST(DistributionTest, RepeatPenaltyMovesLogitsTowardsLess) {
  const DistributionParams params = {.temperature = 0, .repeat_penalty = 2};
  EXPECT_THAT(Make({3, 2, -1}, params, {0}).ids, ElementsAre(1));
  // The penalty applies once, however often the id occurred. Invalid ids are
  // ignored.
  EXPECT_THAT(Make({3, 1.4f, -1}, params, {0, 0, -1, 99}).ids, ElementsAre(0));
  // A negative logit is multiplied.
  EXPECT_THAT(Make({-1, -1.5f}, params, {0}).ids, ElementsAre(1));
}

TEST(DistributionTest, CutsAgreeWithAFullSort) {
  // The cuts are beyond the first sorted run of 256 candidates.
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
    const Distribution distribution =
        Make(logits, {.temperature = 1, .top_p = top_p});
    EXPECT_EQ(distribution.ids.size(), count) << top_p;
  }
}

TEST(DistributionTest, TopKAgreesWithAFullSort) {
  // There are many equals, in no order, and k is from one to all but one.
  std::vector<float> logits(5000);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 7919) % 5000 / 3);
  }
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  for (int k : {1, 2, 40, 1249, 1251, 4999}) {
    Distribution distribution = Make(logits, {.temperature = 100, .top_k = k});
    std::vector<int32_t> kept(order.begin(), order.begin() + k);
    std::sort(kept.begin(), kept.end());
    std::sort(distribution.ids.begin(), distribution.ids.end());
    EXPECT_EQ(distribution.ids, kept) << k;
  }
}

// Compares with the definition, which computes every token's noise and
// logarithm.
TEST(DistributionTest, DrawSkipsNoWinner) {
  std::vector<float> logits(3000);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i * 7919 % logits.size()) * 0.02f;
  }
  for (float temperature : {0.3f, 1.0f, 50.0f}) {
    const Distribution distribution =
        Make(logits, {.temperature = temperature});
    for (int64_t position = 0; position < 200; ++position) {
      std::vector<double> waits;
      for (size_t i = 0; i < distribution.ids.size(); ++i) {
        const auto id = static_cast<uint32_t>(distribution.ids[i]);
        const auto words =
            Philox({static_cast<uint32_t>(position), 0, id / 4, 0}, /*key=*/9);
        waits.push_back(-std::log(OpenUniform(words[id % 4])) /
                        static_cast<double>(distribution.probabilities[i]));
      }
      const auto least = std::min_element(waits.begin(), waits.end());
      EXPECT_EQ(Draw(distribution, /*seed=*/9, position),
                distribution.ids[static_cast<size_t>(least - waits.begin())]);
    }
  }
}

TEST_P(DistributionIsaTest, NoiseOfABlockIsThatOfEachToken) {
  constexpr PerIsa<NoiseWordsFn*> kWords = {
      portable::NoiseWords, avx2::NoiseWords, avx512::NoiseWords,
      avx512::NoiseWords};
  constexpr uint64_t kSeed = 0x123456789abcdef;
  constexpr uint64_t kPosition = uint64_t{7} << 33 | 5;
  constexpr uint32_t kFirstId = 3 * kNoiseIds;
  std::vector<uint32_t> words(kNoiseIds);
  kWords[GetParam()](kSeed, kPosition, kFirstId, words.data());
  for (uint32_t i = 0; i < kNoiseIds; ++i) {
    const auto four =
        Philox({static_cast<uint32_t>(kPosition),
                static_cast<uint32_t>(kPosition >> 32), (kFirstId + i) / 4, 0},
               kSeed);
    EXPECT_EQ(words[i], four[i % 4]) << i;
  }
}

TEST_P(DistributionIsaTest, ABlockMayWinIfOneOfItsTokensMay) {
  constexpr PerIsa<SomeMayWinFn*> kMayWin = {
      portable::SomeMayWin, avx2::SomeMayWin, avx512::SomeMayWin,
      avx512::SomeMayWin};
  std::vector<float> probabilities(kNoiseIds, 1e-4f);
  std::vector<uint32_t> words(kNoiseIds, 1u << 31);
  EXPECT_FALSE(kMayWin[GetParam()](probabilities.data(), words.data(), 1.0));
  for (size_t i = 0; i < kNoiseIds; ++i) {
    words[i] = 0xffffffff;
    EXPECT_TRUE(kMayWin[GetParam()](probabilities.data(), words.data(), 1.0));
    words[i] = 1u << 31;
    probabilities[i] = 0.6f;
    EXPECT_TRUE(kMayWin[GetParam()](probabilities.data(), words.data(), 1.0));
    probabilities[i] = 1e-4f;
  }
}

// A token whose probability is 0 in float is first, and is never drawn.
TEST(DistributionTest, WhatIsImpossibleIsNotDrawn) {
  const Distribution distribution = Make({-1000, 0}, {.temperature = 1});
  ASSERT_EQ(distribution.probabilities, (std::vector<float>{0, 1}));
  for (int64_t position = 0; position < 100; ++position) {
    EXPECT_EQ(Draw(distribution, /*seed=*/9, position), 1);
  }
}

// Rows have several ranges of the vocabulary, on several threads, and each has
// penalties for the tokens before it.
// What is left has the distribution that it has without the others.
TEST(DistributionTest, SomeTokensAreNeverDrawn) {
  const auto stream = Stream::Create({.threads = 2});
  std::vector<float> logits(10'000, 0.0f);
  logits[3] = 9;
  logits[5000] = 8;
  logits[9999] = std::numeric_limits<float>::infinity();
  std::vector<int32_t> never(4096);  // all of one range
  std::iota(never.begin(), never.end(), 0);
  never.push_back(9999);
  const auto made = [&](const DistributionParams& params) {
    return *MakeDistributions(**stream,
                              {.logits = logits.data(),
                               .rows = 1,
                               .vocab = static_cast<int64_t>(logits.size()),
                               .tokens = nullptr,
                               .before = 0,
                               .distribution = params,
                               .never = &never});
  };
  EXPECT_THAT(made({.temperature = 0})[0].ids, ElementsAre(5000));
  for (const float min_p : {0.0f, 1e-8f}) {
    const auto map = AsMap(made({.temperature = 1, .min_p = min_p})[0]);
    const double total = std::exp(8.0) + 10'000 - 4096 - 2;
    EXPECT_NEAR(map.at(5000), std::exp(8.0) / total, 1e-6);
    EXPECT_NEAR(map.at(4096), 1 / total, 1e-9);
    for (const int32_t id : never) {
      const auto found = map.find(id);
      EXPECT_TRUE(found == map.end() || found->second == 0) << id;
    }
  }
}

TEST(DistributionTest, EveryRowHasTheDistributionItHasAlone) {
  constexpr int64_t kRows = 5;
  constexpr int64_t kVocab = 9001;
  constexpr int64_t kAnswer = 32;
  std::vector<float> logits(kRows * kVocab);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(i * 7919 % logits.size()) * 3e-4f;
  }
  const int64_t before = kRepeatWindow + kAnswer;
  std::vector<int32_t> tokens(static_cast<size_t>(before + kRows));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(i * 811 % kVocab);
  }
  // Each row repeats one more of the answer's first tokens.
  const auto answer = tokens.end() - kRows - kAnswer;
  std::copy_n(answer, kRows + 2, tokens.end() - kRows - 2);
  const auto stream = Stream::Create({.threads = 4});
  for (const DistributionParams& params :
       {DistributionParams{.temperature = 0, .repeat_penalty = 1.5f},
        DistributionParams{.temperature = 0.7f, .repeat_penalty = 1.5f},
        DistributionParams{.temperature = 0.7f, .dry = {.multiplier = 2}},
        DistributionParams{.temperature = 0.7f, .top_p = 0.9f}}) {
    const auto distributions =
        MakeDistributions(**stream, {.logits = logits.data(),
                                     .rows = kRows,
                                     .vocab = kVocab,
                                     .tokens = tokens.data(),
                                     .before = before,
                                     .distribution = params,
                                     .answer_begin = kRepeatWindow});
    ASSERT_TRUE(distributions.ok()) << distributions.status();
    ASSERT_EQ(distributions->size(), kRows);
    const bool dry = params.dry.multiplier > 0;
    for (size_t row = 0; row < kRows; ++row) {
      const auto begin = logits.begin() + static_cast<int64_t>(row) * kVocab;
      const auto end = tokens.begin() + before + static_cast<int64_t>(row);
      const Distribution alone =
          Make({begin, begin + kVocab}, params,
               {dry ? answer : end - kRepeatWindow, end});
      EXPECT_EQ((*distributions)[row].ids, alone.ids) << row;
      EXPECT_EQ((*distributions)[row].probabilities, alone.probabilities)
          << row;
    }
  }
}

TEST(DistributionTest, NonFiniteLogitsAreAnError) {
  const auto stream = Stream::Create({.threads = 1});
  const int32_t last = 1;
  // The last becomes infinite by a penalty that is too small.
  for (float bad : {std::numeric_limits<float>::quiet_NaN(),
                    std::numeric_limits<float>::infinity(), 3e38f}) {
    const std::vector<float> logits = {0, bad};
    const auto distributions =
        MakeDistributions(**stream, {.logits = logits.data(),
                                     .rows = 1,
                                     .vocab = 2,
                                     .tokens = &last,
                                     .before = 1,
                                     .distribution = {.repeat_penalty = 0.5f}});
    EXPECT_EQ(CodeOf(distributions.status()), "non_finite");
    EXPECT_THAT(std::string(distributions.status().message()),
                HasSubstr("of token 1"));
  }
}

TEST(DistributionTest, ParametersAreChecked) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<DistributionParams, const char*> kBad[] = {
      {{.temperature = -1}, "temperature"},
      {{.temperature = nan}, "temperature"},
      {{.temperature = 100.5f}, "temperature"},
      {{.top_k = -1}, "top_k"},
      {{.top_p = 0}, "top_p"},
      {{.top_p = 1.01f}, "top_p"},
      {{.top_p = nan}, "top_p"},
      {{.min_p = -0.1f}, "min_p"},
      {{.min_p = 1.01f}, "min_p"},
      {{.repeat_penalty = 0}, "repeat_penalty"},
      {{.repeat_penalty = 100.5f}, "repeat_penalty"},
      {{.repeat_penalty = nan}, "repeat_penalty"},
      {{.dry = {.multiplier = -0.1f}}, "dry_multiplier"},
      {{.dry = {.multiplier = 100.5f}}, "dry_multiplier"},
      {{.dry = {.multiplier = nan}}, "dry_multiplier"},
      {{.dry = {.base = 0.9f}}, "dry_base"},
      {{.dry = {.base = 100.5f}}, "dry_base"},
      {{.dry = {.base = nan}}, "dry_base"},
      {{.dry = {.allowed_length = 0}}, "dry_allowed_length"},
  };
  for (const auto& [bad, field] : kBad) {
    const absl::Status status = ValidateDistributionParams(bad);
    EXPECT_EQ(CodeOf(status), "invalid_sampling") << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
  EXPECT_TRUE(ValidateDistributionParams(
                  {.temperature = 100, .min_p = 1, .repeat_penalty = 100})
                  .ok());
  EXPECT_TRUE(ValidateDistributionParams({}).ok());
}

// The seeds are fixed, so the result is always the same.
TEST(DistributionTest, DrawsFollowTheDistribution) {
  // One of four is so rare that noise of few bits would never draw it.
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
    Distribution distribution;
    size_t outcomes;
    int64_t draws;
  } cases[] = {
      {Make(rare, {.temperature = 1}), 4, SamplesFor(4, kVariation)},
      {Make(few, {.temperature = 1, .top_k = 8, .top_p = 0.9f}), 5,
       SamplesFor(5, kVariation)},
      {Make(many, {.temperature = 0.05f, .top_p = 0.8f}), 9, 50'000},
      {Make(many, {.temperature = 3, .min_p = 0.71f}), 103, 5000},
  };
  for (const auto& [distribution, outcomes, draws] : cases) {
    ASSERT_EQ(distribution.ids.size(), outcomes);
    std::map<int32_t, double> exact;
    for (const auto& [id, p] : AsMap(distribution)) exact[id] = p;
    std::map<int32_t, int64_t> counts;
    // Half of the draws are at other positions, half with other seeds.
    for (int64_t i = 0; i <= draws / 2; ++i) {
      ++counts[Draw(distribution, /*seed=*/7, i)];
      ++counts[Draw(distribution, static_cast<uint64_t>(i), /*position=*/-1)];
    }
    const double variation = ExpectCounts(exact, counts);
    if (draws > 1'000'000) {
      EXPECT_LT(variation, kVariation);
    }
  }
}

TEST(DistributionTest, NoiseBelongsToSeedPositionAndToken) {
  const Distribution distribution = Make(kHalves, {.temperature = 1});
  // Every bit of seed and position counts.
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t other = uint64_t{1} << bit;
    int by_seed = 0;
    int by_position = 0;
    for (uint64_t i = 0; i < 64; ++i) {
      const int32_t drawn = Draw(distribution, i, 1000);
      EXPECT_EQ(Draw(distribution, i, 1000), drawn);
      by_seed += Draw(distribution, i ^ other, 1000) != drawn;
      by_position +=
          Draw(distribution, i, static_cast<int64_t>(1000 ^ other)) != drawn;
    }
    EXPECT_GT(by_seed, 10) << bit;
    EXPECT_GT(by_position, 10) << bit;
  }
  // A token that wins still wins if others leave the distribution.
  for (int i = 0; i < 64; ++i) {
    const int32_t winner = Draw(distribution, 1, i);
    Distribution fewer;
    for (size_t j = 0; j < distribution.ids.size(); ++j) {
      if (distribution.ids[j] != winner && fewer.ids.size() >= 1) continue;
      fewer.ids.push_back(distribution.ids[j]);
      fewer.probabilities.push_back(distribution.probabilities[j]);
    }
    EXPECT_EQ(Draw(fewer, 1, i), winner);
  }
}

}  // namespace
}  // namespace tiercel
