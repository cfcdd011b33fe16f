#include "kernels/token/dry.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tiercel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

using Ids = std::vector<int32_t>;

DryParams Params(const std::vector<Ids>& breakers = {}) {
  DryParams params = {.multiplier = 0.8f};
  if (breakers.empty()) return params;
  SequenceBreakers made;
  for (const Ids& run : breakers) made.Add(run);
  params.breakers = std::make_shared<SequenceBreakers>(made);
  return params;
}

// The penalties 0.8 * 1.75^more, by hand: 0.8, 1.4, 2.45, 4.2875.
constexpr float kFirst = 0.8f;
constexpr float kSecond = 1.4f;
constexpr float kThird = 2.45f;

auto Costs(int32_t id, float penalty) {
  return Pair(id, testing::FloatEq(penalty));
}

TEST(DryTest, WhatFollowedTheSameTokensCosts) {
  // In "a b c d ... a b" two tokens are repeated, which c followed.
  EXPECT_THAT(DryPenalties(Params(), Ids{1, 2, 3, 4, 1, 2}),
              ElementsAre(Costs(3, kFirst)));
  EXPECT_THAT(DryPenalties(Params(), Ids{1, 2, 3, 4, 1, 2, 3}),
              ElementsAre(Costs(4, kSecond)));
  EXPECT_THAT(DryPenalties(Params(), Ids{1, 2, 3, 4, 1, 2, 3, 4}),
              ElementsAre(Costs(1, kThird)));
}

TEST(DryTest, WhatIsAllowedCostsNothing) {
  EXPECT_THAT(DryPenalties(Params(), Ids{}), IsEmpty());
  EXPECT_THAT(DryPenalties(Params(), Ids{1}), IsEmpty());
  EXPECT_THAT(DryPenalties(Params(), Ids{1, 2}), IsEmpty());
  EXPECT_THAT(DryPenalties(Params(), Ids{1, 2, 1}),
              IsEmpty());  // one is too few
  EXPECT_THAT(DryPenalties(Params(), Ids{1, 2, 3, 4, 5, 6}), IsEmpty());
  DryParams params = Params();
  params.allowed_length = 3;
  EXPECT_THAT(DryPenalties(params, Ids{1, 2, 3, 4, 1, 2}), IsEmpty());
  EXPECT_THAT(DryPenalties(params, Ids{1, 2, 3, 4, 1, 2, 3}),
              ElementsAre(Costs(4, kFirst)));
  params.allowed_length = 1;
  EXPECT_THAT(DryPenalties(params, Ids{1, 2, 1}),
              ElementsAre(Costs(2, kFirst)));
}

// The longest repetition counts for each token.
TEST(DryTest, EachTokenCostsByItsLongestRepetition) {
  // "2 3" before 4, "1 2 3" before 5, and "2 3" before 5.
  EXPECT_THAT(
      DryPenalties(Params(), Ids{2, 3, 4, 1, 2, 3, 5, 2, 3, 5, 1, 2, 3}),
      ElementsAre(Costs(4, kFirst), Costs(5, kSecond)));
}

// A repetition may overlap the tokens that it repeats.
TEST(DryTest, OneTokenAgainAndAgain) {
  EXPECT_THAT(DryPenalties(Params(), Ids{7, 7, 7, 7}),
              ElementsAre(Costs(7, kSecond)));
}

TEST(DryTest, ABreakerEndsARepetition) {
  // Only "1 2", or only "2", is repeated after 9.
  EXPECT_THAT(DryPenalties(Params({{9}}), Ids{9, 1, 2, 3, 9, 1, 2}),
              ElementsAre(Costs(3, kFirst)));
  EXPECT_THAT(DryPenalties(Params({{9}}), Ids{1, 9, 2, 3, 1, 9, 2}), IsEmpty());
  EXPECT_THAT(DryPenalties(Params({{9}}), Ids{1, 2, 9, 1, 2, 9}), IsEmpty());
  // A breaker itself has no penalty.
  EXPECT_THAT(DryPenalties(Params(), Ids{1, 2, 9, 1, 2}),
              ElementsAre(Costs(9, kFirst)));
  EXPECT_THAT(DryPenalties(Params({{9}}), Ids{1, 2, 9, 1, 2}), IsEmpty());
}

TEST(DryTest, ABreakerOfSeveralTokensIsWhole) {
  const DryParams params = Params({{8, 9}});
  EXPECT_THAT(DryPenalties(params, Ids{8, 9, 2, 3, 8, 9, 2}), IsEmpty());
  // Its tokens in another order, or half of it, are no breaker.
  EXPECT_THAT(DryPenalties(params, Ids{9, 8, 2, 3, 9, 8, 2}),
              ElementsAre(Costs(3, kSecond)));
  EXPECT_THAT(DryPenalties(params, Ids{8, 2, 3, 8, 2}),
              ElementsAre(Costs(3, kFirst)));
  // Its first token alone is no breaker, and has a penalty as any other.
  EXPECT_THAT(DryPenalties(params, Ids{1, 2, 8, 5, 1, 2}),
              ElementsAre(Costs(8, kFirst)));
}

TEST(SequenceBreakersTest, AfterTheLastLongestRun) {
  SequenceBreakers breakers;
  for (const Ids& run : std::vector<Ids>{{5}, {5, 6, 7}, {5, 6}, {5}}) {
    breakers.Add(run);
  }
  EXPECT_EQ(breakers.AfterLast(Ids{}), 0u);
  EXPECT_EQ(breakers.AfterLast(Ids{1, 2, 3}), 3u);
  EXPECT_EQ(breakers.AfterLast(Ids{5, 1, 5}), 0u);
  EXPECT_EQ(breakers.AfterLast(Ids{5, 6}), 0u);
  EXPECT_EQ(breakers.AfterLast(Ids{5, 6, 7, 8}), 1u);
  EXPECT_EQ(breakers.AfterLast(Ids{5, 6, 8, 7}), 2u);
  EXPECT_TRUE(breakers.IsBreaker(5));
  EXPECT_FALSE(breakers.IsBreaker(6));
  SequenceBreakers longer;
  longer.Add({5, 6});
  EXPECT_FALSE(longer.IsBreaker(5));
}

// The power is limited so that the logit stays finite.
TEST(DryTest, LongRepetitionsCostAFiniteAmount) {
  const Ids text(5000, 3);
  DryParams params = Params();
  const float most = DryPenalties(params, text).at(3);
  // ln of the greatest float over ln 1.75 is 158.5.
  EXPECT_FLOAT_EQ(most, static_cast<float>(0.8 * std::pow(1.75, 158)));
  for (const float base : {1.0f, 1.0000005f, 100.0f}) {
    params.base = base;
    params.multiplier = 100;
    EXPECT_TRUE(std::isfinite(DryPenalties(params, text).at(3))) << base;
  }
  params.base = 1;
  EXPECT_EQ(DryPenalties(params, text).at(3), 100);
}

// Penalties have the bits of llama.cpp's own sampler
// (tests/golden/make_dry.py).
TEST(DryTest, AgreesWithLlamaCpp) {
  std::ifstream golden("tests/golden/dry.txt");
  const auto read = [&golden] {
    size_t size = 0;
    golden >> size;
    Ids ids(size);
    for (int32_t& id : ids) golden >> id;
    return ids;
  };
  int cases = 0;
  int penalised = 0;
  DryParams params;
  size_t count = 0;
  while (golden >> params.multiplier >> params.base >> params.allowed_length >>
         count) {
    SequenceBreakers breakers;
    for (size_t i = 0; i < count; ++i) breakers.Add(read());
    params.breakers = std::make_shared<SequenceBreakers>(breakers);
    const Ids text = read();
    std::map<int32_t, float> expected;
    golden >> count;
    for (size_t i = 0; i < count; ++i) {
      int32_t id = 0;
      golden >> id >> expected[id];
    }
    ASSERT_TRUE(golden.good());
    EXPECT_EQ(DryPenalties(params, text), expected)
        << "line " << cases + 1 << ", " << testing::PrintToString(text);
    ++cases;
    penalised += expected.empty() ? 0 : 1;
  }
  EXPECT_EQ(cases, 400);
  EXPECT_GT(penalised, 100);
}

// Compares with the definition, token by token, over texts of few words with
// and without breakers.
TEST(DryTest, AgreesWithTheDefinition) {
  uint32_t state = 1;
  const auto next = [&state](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
  };
  int penalised = 0;
  for (int round = 0; round < 3000; ++round) {
    const uint32_t words = 2 + next(4);
    Ids text(next(40));
    for (int32_t& id : text) id = static_cast<int32_t>(next(words));
    SequenceBreakers breakers;
    const uint32_t kinds = next(3);
    for (uint32_t i = 0; i < kinds; ++i) {
      Ids run(1 + next(3));
      for (int32_t& id : run) id = static_cast<int32_t>(next(words));
      breakers.Add(run);
    }
    DryParams params = {.multiplier = 1, .base = 2};
    params.allowed_length = 1 + static_cast<int>(next(3));
    params.breakers = std::make_shared<SequenceBreakers>(breakers);
    std::map<int32_t, float> expected;
    const size_t most = breakers.AfterLast(text);
    const auto allowed = static_cast<size_t>(params.allowed_length);
    for (size_t at = 0; at < text.size();
         ++at) {  // the token at `at` would recur
      size_t same = 0;
      while (same < at && same < most &&
             text[at - 1 - same] == text[text.size() - 1 - same]) {
        ++same;
      }
      if (same < allowed || breakers.IsBreaker(text[at])) continue;
      float& penalty = expected[text[at]];
      penalty =
          std::max(penalty, std::exp2(static_cast<float>(same - allowed)));
    }
    EXPECT_EQ(DryPenalties(params, text), expected)
        << testing::PrintToString(text);
    penalised += expected.empty() ? 0 : 1;
  }
  EXPECT_GT(penalised, 1000);
}

}  // namespace
}  // namespace tiercel
