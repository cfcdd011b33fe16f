#include "kernels/token/token_mask.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/token/distribution.h"
#include "lib/status/error.h"

namespace tiercel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Ids = std::vector<int32_t>;

// Allows the tokens that `allows` names behind an output.
TokenMask::Rule Only(std::function<Ids(const Ids&)> allows) {
  return [allows = std::move(allows)](std::span<const int32_t> output,
                                      std::span<uint32_t> allowed) {
    std::fill(allowed.begin(), allowed.end(), 0u);
    for (const int32_t id : allows({output.begin(), output.end()})) {
      allowed[static_cast<size_t>(id) / 32] |= 1u << (id % 32);
    }
    return absl::OkStatus();
  };
}

TEST(TokenSetTest, HasTheVocabulary) {
  for (const int32_t vocab : {1, 31, 32, 33, 100}) {
    TokenSet set(vocab);
    EXPECT_EQ(set.words().size(), static_cast<size_t>(vocab + 31) / 32);
    for (int32_t id = 0; id < vocab; ++id) {
      EXPECT_FALSE(set.IsEmpty());
      EXPECT_TRUE(set.Has(id)) << id;
      set.Remove(id);
      EXPECT_FALSE(set.Has(id)) << id;
    }
    EXPECT_TRUE(set.IsEmpty());
  }
}

TEST(TokenMaskTest, SeesTheOutputUntilItEnds) {
  std::vector<Ids> asked;
  const TokenMask mask(Only([&](const Ids& output) {
                         asked.push_back(output);
                         return Ids{1, 33};
                       }),
                       /*begin=*/2, /*ends=*/{7, 9});
  const auto allowed = mask.Allowed(Ids{9, 8, 4, 5}, 34);
  ASSERT_TRUE(allowed.ok());
  EXPECT_THAT(asked, ElementsAre(ElementsAre(4, 5)));
  EXPECT_TRUE(allowed->Has(1));
  EXPECT_TRUE(allowed->Has(33));
  EXPECT_FALSE(allowed->Has(2));
  ASSERT_TRUE(mask.Allowed(Ids{7, 7}, 34).ok());
  EXPECT_THAT(asked.back(), IsEmpty());
  EXPECT_EQ(asked.size(), 2u);
  // Behind an end everything may follow.
  const auto behind = mask.Allowed(Ids{9, 8, 4, 9, 5}, 34);
  ASSERT_TRUE(behind.ok());
  EXPECT_TRUE(behind->Has(2));
  EXPECT_EQ(asked.size(), 2u);
}

TEST(TokenMaskTest, BitsOfNoTokenMeanNothing) {
  const auto rule = [](std::span<const int32_t>, std::span<uint32_t> allowed) {
    EXPECT_EQ(allowed.back(), 7u);  // three tokens, all allowed
    allowed.back() = ~7u;
    return absl::OkStatus();
  };
  const auto allowed = TokenMask(rule, 0, {}).Allowed({}, 35);
  ASSERT_TRUE(allowed.ok());
  EXPECT_TRUE(allowed->Has(31));
  EXPECT_EQ(allowed->words().back(), 0u);
}

// ---- In the sampler ----

class MaskedDistributionTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<Distribution>> Make(
      const std::vector<float>& logits, const TokenMask::Rule& rule,
      DistributionParams params, int64_t rows = 1) {
    if (rule) params.mask = std::make_shared<TokenMask>(rule, begin_, ends_);
    return MakeDistributions(
        **stream_, {.logits = logits.data(),
                    .rows = rows,
                    .vocab = static_cast<int64_t>(logits.size()) / rows,
                    .tokens = tokens_.data(),
                    .before = std::ssize(tokens_) - rows + 1,
                    .distribution = params,
                    .never = &never_,
                    .text = text_.data(),
                    .text_before = std::ssize(text_) - rows + 1});
  }
  // The tokens that have a probability.
  std::map<int32_t, float> MapOf(const std::vector<float>& logits,
                                 const TokenMask::Rule& rule,
                                 const DistributionParams& params) {
    const auto made = Make(logits, rule, params);
    EXPECT_TRUE(made.ok()) << made.status();
    std::map<int32_t, float> map;
    if (!made.ok()) return map;
    const Distribution& distribution = made->front();
    for (size_t i = 0; i < distribution.ids.size(); ++i) {
      if (distribution.probabilities[i] > 0) {
        map[distribution.ids[i]] = distribution.probabilities[i];
      }
    }
    return map;
  }

  absl::StatusOr<std::unique_ptr<Stream>> stream_ =
      Stream::Create({.threads = 2});
  Ids tokens_;
  Ids text_;
  int64_t begin_ = 0;
  Ids ends_;
  Ids never_;
};

// Weights 4, 2, 1, 1 of ids 2, 0, 1 and 3.
const std::vector<float> kWeights = {std::log(2.0f), 0.0f, std::log(4.0f),
                                     0.0f};

TokenMask::Rule Always(const Ids& ids) {
  return Only([ids](const Ids&) { return ids; });
}

TEST_F(MaskedDistributionTest, WhatIsForbiddenHasNoProbability) {
  EXPECT_THAT(MapOf(kWeights, Always({1, 3}), {}), ElementsAre(Pair(1, 1.0f)));
  EXPECT_THAT(MapOf(kWeights, Always({0, 1, 3}), {.temperature = 1}),
              ElementsAre(Pair(0, 0.5f), Pair(1, 0.25f), Pair(3, 0.25f)));
  const auto made = Make(kWeights, Always({0, 3}), {.temperature = 5});
  ASSERT_TRUE(made.ok());
  for (uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_EQ(Draw(made->front(), seed, 3) % 3, 0);
  }
}

// The cuts are of what the mask leaves, and the penalties come before it.
TEST_F(MaskedDistributionTest, ComesBehindPenaltiesAndBeforeCuts) {
  EXPECT_THAT(
      MapOf(kWeights, Always({0, 1, 3}), {.temperature = 1, .top_k = 1}),
      ElementsAre(Pair(0, 1.0f)));
  EXPECT_EQ(
      MapOf(kWeights, Always({0, 1, 3}), {.temperature = 1, .top_p = 0.49f})
          .size(),
      1u);
  EXPECT_EQ(
      MapOf(kWeights, Always({1, 3}), {.temperature = 1, .min_p = 0.9f}).size(),
      2u);
  // A temperature near 0 takes the best of those that are allowed.
  EXPECT_THAT(MapOf(kWeights, Always({0, 3}), {.temperature = 1e-30f}),
              ElementsAre(Pair(0, 1.0f)));
  tokens_ = {0};
  const auto map = MapOf({2, 1.5f, 9, -4}, Always({0, 1, 3}),
                         {.temperature = 1, .repeat_penalty = 2});
  EXPECT_GT(map.at(1), map.at(0));
  // The greatest penalty leaves the only token that is allowed.
  tokens_ = Ids(60, 1);
  EXPECT_THAT(
      MapOf({5, 5, 5, 5}, Always({1}),
            {.temperature = 100, .dry = {.multiplier = 100, .base = 100}}),
      ElementsAre(Pair(1, 1.0f)));
}

TEST_F(MaskedDistributionTest, EachRowIsMaskedBehindItsOwnTokens) {
  // A token may follow its predecessor.
  const auto next = Only([](const Ids& output) {
    return output.empty() ? Ids{0} : Ids{(output.back() + 1) % 40};
  });
  constexpr int64_t kVocab = 40;
  const std::vector<float> logits(4 * kVocab, 1.0f);
  begin_ = 2;
  text_ = {9, 9, 0, 20, 35};
  tokens_ = {1, 1, 1};  // penalties may see another text
  for (const float temperature : {0.0f, 1.0f}) {
    const auto made = Make(logits, next, {.temperature = temperature}, 4);
    ASSERT_TRUE(made.ok()) << made.status();
    const Ids expected = {0, 1, 21, 36};
    for (size_t row = 0; row < 4; ++row) {
      EXPECT_EQ(Draw((*made)[row], 5, 5), expected[row]);
    }
  }
}

TEST_F(MaskedDistributionTest, ADistributionMayBeEmpty) {
  const auto some = Only([](const Ids& output) {
    return output.empty() ? Ids{} : Ids{2, 3};
  });
  text_ = tokens_ = {1};
  for (const float temperature : {0.0f, 1.0f}) {
    for (const int top_k : {0, 3}) {
      const auto made = Make({1, 2, 3, 4, 1, 2, 3, 4}, some,
                             {.temperature = temperature, .top_k = top_k}, 2);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_THAT(made->front().ids, IsEmpty());
      EXPECT_EQ(Draw(made->front(), 1, 1), kNoToken);
      EXPECT_GE(Draw(made->back(), 1, 1), 2);
    }
  }
  // A draft model lacks all that is allowed.
  never_ = {2, 3};
  const auto made = Make({1, 2, 3, 4}, Always({2, 3}), {.temperature = 1});
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(made->front().ids, IsEmpty());
  EXPECT_THAT(MapOf(kWeights, Always({0, 2, 3}), {.temperature = 1}),
              ElementsAre(Pair(0, 1.0f)));
}

TEST_F(MaskedDistributionTest, AMaskThatAllowsAllChangesNothing) {
  constexpr size_t kVocab = 10'007;
  std::vector<float> logits(kVocab);
  for (size_t i = 0; i < kVocab; ++i) {
    logits[i] = static_cast<float>(i * 7919 % 1009) / 50;
  }
  tokens_ = text_ = {5, 6, 7, 5, 6};
  const auto all = [](std::span<const int32_t>, std::span<uint32_t>) {
    return absl::OkStatus();
  };
  for (const DistributionParams& params : std::vector<DistributionParams>{
           {},
           {.temperature = 0.7f},
           {.temperature = 1, .top_k = 50, .top_p = 0.9f},
           {.temperature = 1,
           .repeat_penalty = 1.2f,
           .dry = {.multiplier = 1, .allowed_length = 1}}}) {
    const auto plain = Make(logits, nullptr, params);
    const auto masked = Make(logits, all, params);
    ASSERT_TRUE(plain.ok() && masked.ok());
    EXPECT_EQ(masked->front().ids, plain->front().ids);
    EXPECT_EQ(masked->front().probabilities, plain->front().probabilities);
  }
}

TEST_F(MaskedDistributionTest, FaultsAreFound) {
  // A broken logit shows, though its token is forbidden.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(CodeOf(Make({1, nan, 2}, Always({0}), {}).status()), "non_finite");
  const auto fails = [](std::span<const int32_t>, std::span<uint32_t>) {
    return CancelledError();
  };
  EXPECT_EQ(CodeOf(Make({1, 2}, fails, {}).status()), "cancelled");
  begin_ = 1;  // the text ends before the output begins
  EXPECT_EQ(CodeOf(Make({1, 2}, Always({0}), {}).status()), "invalid_argument");
}

}  // namespace
}  // namespace tiercel
