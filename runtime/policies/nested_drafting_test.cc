// The options that a user has for a text hold with every drafter, however deep:
// an end of text inside a block, every sampler, lengths that adapt.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drafts/draw_key.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/token/distribution.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "tests/drafting.h"
#include "tests/golden.h"

namespace tiercel::nested_drafting_test {
namespace {

// A view of the whole text of these tests.
constexpr RetrievalSize kWholeView = {
    .chunk = 16, .budget = 4096, .sink = 1, .window = 16};
constexpr DraftWindow kWholeWindow = {.sink = 4, .recent = 512};

class NestedDraftingTest : public RepeatedTextTest<3> {
 protected:
  static std::unique_ptr<Session> WithView(const RetrievalSize& size,
                                           const Model& model = *model_) {
    return Prefilled(model, *prompt_, {.retrieval = size});
  }

  static std::vector<PolicyParams> Choices(VerifyMode verify,
                                           const DraftWindow& window) {
    std::vector<PolicyParams> choices;
    for (const PolicyKind* policy :
         {PolicyNamed("full"), PolicyNamed("triforce")}) {
      for (const Proposer proposer : {Proposer::kNone, Proposer::kNgram,
                                      Proposer::kSelf, Proposer::kSmall}) {
        if (policy == PolicyNamed("full") && proposer == Proposer::kNone)
          continue;
        choices.push_back({.policy = policy,
                           .proposer = proposer,
                           .verify = verify,
                           .gamma1 = DraftLength::Fixed(5),
                           .gamma2 = DraftLength::Fixed(12),
                           .draft_model = model_,
                           .draft_window = window});
      }
    }
    return choices;
  }

  static std::string NameOf(const PolicyParams& choice) {
    return "policy " + std::string(choice.policy->name()) + ", proposer " +
           std::to_string(static_cast<int>(choice.proposer));
  }
};

// The text ends before its end token, whatever was drafted behind it, and the
// session is as if nothing had been drafted.
TEST_F(NestedDraftingTest, AnEndOfTextInsideABlock) {
  GenerateParams params = DraftedParams(0.8f, 60);
  const Ids endless = PlainText(*model_, *prompt_, params);
  params.ignore_eos = false;
  const auto ending =
      OpenModel({.path = CheckpointPath("llama_chat.gguf"), .machine = {}});
  bool inside = false;
  for (const size_t place : {0, 1, 7, 20, 40}) {
    ending->config.eos_ids = {endless[place]};
    const Ids expected(
        endless.begin(),
        std::find(endless.begin(), endless.end(), endless[place]));
    ASSERT_EQ(PlainText(*ending, *prompt_, params), expected);
    for (const PolicyParams& choice :
         Choices(VerifyMode::kCoupled, kWholeWindow)) {
      SCOPED_TRACE(NameOf(choice));
      const auto session = WithView(kWholeView, *ending);
      const Report report = GenerateDrafted(*session, params, choice);
      ASSERT_EQ(report.tokens, expected) << place;
      EXPECT_EQ(report.finish_reason, "stop");
      EXPECT_EQ(session->sequence().tokens().size(),
                prompt_->size() + expected.size());
      EXPECT_EQ(report.token_seconds.size(), expected.size());
      inside |= report.rounds.levels.back().accepted > std::ssize(expected);
      ExpectNoTrace(*session, *ending);
    }
  }
  EXPECT_TRUE(inside);  // more had been accepted than was given out
}

const std::vector<DistributionParams>& AllDistributions() {
  static const auto* const distributions = new std::vector<DistributionParams>{
      {.repeat_penalty = 1.3f},  // greedy
      {.temperature = 0.9f, .repeat_penalty = 1.3f},
      {.dry = StrictDry()},  // greedy
      {.temperature = 0.9f, .dry = StrictDry()},
      {.temperature = 1.5f, .top_k = 5},
      {.temperature = 1.5f, .min_p = 0.2f},
      {.temperature = 1.2f,
       .top_k = 40,
       .top_p = 0.8f,
       .min_p = 0.02f,
       .repeat_penalty = 1.2f,
       .dry = StrictDry()}};
  return *distributions;
}

TEST_F(NestedDraftingTest, EveryDistributionGivesTheTextOfNoDrafter) {
  GenerateParams params = DraftedParams(0, 40);
  std::vector<Ids> texts;
  for (const DistributionParams& distribution : AllDistributions()) {
    params.distribution = distribution;
    const Ids expected = PlainText(*model_, *prompt_, params);
    EXPECT_THAT(texts, testing::Not(testing::Contains(expected)));
    texts.push_back(expected);
    for (const PolicyParams& choice : Choices(VerifyMode::kCoupled, {4, 16})) {
      const auto session = WithView(kSmallView);
      ASSERT_EQ(DraftedText(*session, params, choice), expected)
          << NameOf(choice) << ", distribution " << texts.size();
      ExpectNoTrace(*session, *model_);
    }
  }
}

// Every level makes its distributions as the target does: where it sees all
// that the target sees, its tokens hold. Sums in another order differ in their
// last bits, which a draw may show.
TEST_F(NestedDraftingTest, EveryLevelHasTheTargetsDistribution) {
  GenerateParams params = DraftedParams(0, 60);
  for (const DistributionParams& distribution : AllDistributions()) {
    params.distribution = distribution;
    for (const VerifyMode verify :
         {VerifyMode::kCoupled, VerifyMode::kResidual}) {
      for (const PolicyParams& choice : Choices(verify, kWholeWindow)) {
        const auto session = WithView(kWholeView);
        const Report report = GenerateDrafted(*session, params, choice);
        ASSERT_TRUE(report.status.ok()) << report.status;
        for (const DraftLevel& level : report.rounds.levels) {
          const std::string name = level.drafter;
          if (name == "ngram" || name == "self") continue;
          EXPECT_GE(level.drafted, 40) << name;
          EXPECT_GE(level.accepted, level.checked - 2)
              << name << ", temperature " << distribution.temperature
              << ", top_k " << distribution.top_k << ", penalty "
              << distribution.repeat_penalty << ", dry "
              << distribution.dry.multiplier << ", " << NameOf(choice);
        }
      }
    }
  }
}

// Draws uniformly from the vocabulary.
class RandomDrafter final : public Drafter {
 public:
  explicit RandomDrafter(int64_t vocab) {
    for (int32_t id = 0; id < vocab; ++id) {
      distribution_.ids.push_back(id);
      distribution_.probabilities.push_back(1 / static_cast<float>(vocab));
    }
  }
  const char* name() const override { return "random"; }
  absl::StatusOr<DraftBlock> Draft(const Ids& /*tokens*/, int64_t most,
                                   const DrawKey& key) override {
    asked.push_back(most);
    DraftBlock block;
    for (int64_t i = 0; i < most; ++i) {
      block.distributions.push_back(distribution_);
      block.tokens.push_back(
          Draw(distribution_, key.SeedFor(Purpose::kDraft), key.start + i));
    }
    return block;
  }
  std::vector<int64_t> asked;

 private:
  Distribution distribution_;
};

TEST_F(NestedDraftingTest, ARandomDraftHardlyEverHolds) {
  const auto vocab = model_->config.vocab;
  for (const float temperature : {0.0f, 0.6f}) {
    for (const VerifyMode verify :
         {VerifyMode::kCoupled, VerifyMode::kResidual}) {
      RandomDrafter random(vocab);
      ScriptedParams params = DraftedParams(temperature, 200);
      params.verify = verify;
      params.drafter = &random;
      params.draft_length = DraftLength::Fixed(4);
      const auto session = Prefilled(*model_, *prompt_);
      const Report report = Generate(*session, params, nullptr);
      ASSERT_TRUE(report.status.ok()) << report.status;
      const DraftLevel& level = report.rounds.levels.at(0);
      EXPECT_GE(level.checked, 190);
      // One draft in `vocab` holds if the distribution is one token; if it has
      // several, each is drafted as rarely.
      EXPECT_LE(level.accepted, level.checked / 10) << temperature;
      EXPECT_GE(report.sweeps, 199 - level.accepted);
      ExpectNoTrace(*session, *model_);
    }
  }
}

// Drafts the tokens that the target will choose, or never does.
class KnowingDrafter final : public Drafter {
 public:
  KnowingDrafter(Ids text, size_t prompt, int32_t off)
      : text_(std::move(text)), prompt_(prompt), off_(off) {}
  const char* name() const override { return "knowing"; }
  absl::StatusOr<DraftBlock> Draft(const Ids& tokens, int64_t most,
                                   const DrawKey& /*key*/) override {
    asked.push_back(most);
    DraftBlock block;
    for (size_t i = tokens.size() - prompt_;
         i < text_.size() && std::ssize(block.tokens) < most; ++i) {
      const int32_t id = text_[i] ^ off_;
      block.tokens.push_back(id);
      block.distributions.push_back({{id}, {1.0f}});
    }
    return block;
  }
  std::vector<int64_t> asked;

 private:
  const Ids text_;
  const size_t prompt_;
  const int32_t off_;
};

TEST_F(NestedDraftingTest, LengthsGrowWhileAllHoldsAndShrinkWhileNothingDoes) {
  ScriptedParams params = DraftedParams(0.7f, 400);
  params.verify = VerifyMode::kCoupled;
  const Ids text = PlainText(*model_, *prompt_, params);
  params.draft_length = DraftLength::Adaptive(10);
  const int64_t first = params.draft_length.Next();
  for (const int32_t off : {0, 1}) {
    KnowingDrafter knowing(text, prompt_->size(), off);
    params.drafter = &knowing;
    const auto session = Prefilled(*model_, *prompt_);
    ASSERT_EQ(Generate(*session, params, nullptr).tokens, text);
    const std::vector<int64_t>& asked = knowing.asked;
    ASSERT_GT(asked.size(), 5u);
    EXPECT_EQ(asked.front(), first);
    for (size_t i = 1; i < asked.size(); ++i) {
      if (off == 0) {
        EXPECT_GE(asked[i], asked[i - 1]) << i;
      } else {
        EXPECT_LE(asked[i], asked[i - 1]) << i;
      }
    }
    if (off == 0) {
      EXPECT_GT(asked.back(), 2 * first);
    } else {
      EXPECT_EQ(asked.back(), 1);
    }
  }
}

// Lengths adapt on each level: with a view of everything both grow.
TEST_F(NestedDraftingTest, LengthsOfAChainAdapt) {
  const GenerateParams params = DraftedParams(0.7f, 300);
  const auto sweeps = [&](const DraftLength& outer, const RetrievalSize& view) {
    const PolicyParams choice = {.policy = PolicyNamed("triforce"),
                                 .proposer = Proposer::kSmall,
                                 .verify = VerifyMode::kCoupled,
                                 .gamma1 = DraftLength::Adaptive(20),
                                 .gamma2 = outer,
                                 .draft_model = model_,
                                 .draft_window = kWholeWindow};
    const auto session = WithView(view);
    const Report report = GenerateDrafted(*session, params, choice);
    EXPECT_TRUE(report.status.ok()) << report.status;
    // A round of the inner level gives the tokens that held and one more.
    const std::vector<DraftLevel>& levels = report.rounds.levels;
    EXPECT_GT(levels[0].accepted, levels[1].drafted * 3 / 4);
    EXPECT_EQ(levels[0].cost_ratio, 20);
    return report.sweeps;
  };
  // 300 tokens at 64 a sweep, except in the first few blocks.
  EXPECT_LE(sweeps(DraftLength::Adaptive(20), kWholeView), 12);
  EXPECT_GE(sweeps(DraftLength::Fixed(8), kWholeView), 300 / 9);
}

}  // namespace
}  // namespace tiercel::nested_drafting_test
