#include "runtime/drafting/draft_costs.h"

#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/plan/known_rates.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_parts.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::draft_costs_test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLength = 1000;
constexpr RetrievalSize kView = {
    .chunk = 8, .budget = 64, .sink = 8, .window = 56};

// The rates of a machine on which positions cost nothing, and a row among many
// costs a sixteenth of a row alone.
constexpr Rates kNoPositions = {.prompt_row_s = 1.0 / 16,
                                .prompt_position_s = 0,
                                .step_s = 1,
                                .step_position_s = 0,
                                .logits_s = 1e-9,
                                .copy_bytes_per_s = 1e12,
                                .copy_slowdown = 1};

// Tests the ratio of costs that adaptive lengths count with.
class CostRatioTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/draft_costs_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    Model::Options options;
    options.path = CheckpointPath("llama_chat.gguf");
    options.machine.threads = 1;
    auto model = Model::Open(options, [](uint64_t, uint64_t) { return true; });
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    layers_ = model_->config.layers;
    ASSERT_GE(layers_, 2);
  }
  void TearDown() override { fs::remove_all(folder_); }

  KeptRates Keep(const Rates& rates, double spread) {
    return Keep(rates, spread, *model_);
  }
  KeptRates Keep(const Rates& rates, double spread, const Model& model) {
    const auto key = RatesKey(model, Session::Options().Layout(model.config));
    EXPECT_TRUE(key.ok()) << key.status();
    const absl::StatusOr<KeptRates> kept = RatesCache(folder_).Add(
        *key, "model", {.rates = rates, .spread = spread});
    EXPECT_TRUE(kept.ok()) << kept.status();
    return kept.ok() ? *kept : KeptRates();
  }

  struct Ratios {
    double inner = 0;  // the level below the outermost
    double outer = 0;
    bool operator==(const Ratios& other) const {
      return inner == other.inner && outer == other.outer;
    }
  };
  Ratios RatiosOf(const PolicyParams& choice) {
    return RatiosOf(choice, *model_);
  }
  Ratios RatiosOf(PolicyParams choice, const Model& model) {
    const absl::StatusOr<std::unique_ptr<Session>> session =
        Session::Create(model, {.retrieval = kView});
    EXPECT_TRUE(session.ok()) << session.status();
    std::vector<int32_t> ids(kLength, 1);
    EXPECT_TRUE((*session)->Append(ids.data(), ids.size()).ok());
    if (!choice.gamma1.has_value()) choice.gamma1 = DraftLength::Adaptive();
    choice.gamma2 = choice.gamma1;
    choice.draft_model = model_.get();
    const std::optional<KeptRates> kept =
        KnownRates(model, (*session)->kv().site().layout, folder_);
    if (kept.has_value()) choice.costs = kept->costs;
    const auto policy = NewPolicy(**session, choice);
    EXPECT_TRUE(policy.ok()) << policy.status();
    EXPECT_TRUE((*policy)->Begin({}, /*seed=*/1).ok());
    const std::vector<DraftLevel> levels = (*policy)->report().levels;
    return {.inner = levels.size() > 1 ? levels.front().cost_ratio : 0,
            .outer = levels.back().cost_ratio};
  }

  std::string folder_;
  std::unique_ptr<Model> model_;
  int layers_ = 0;
};

const PolicyKind* const kPolicies[] = {PolicyNamed("full"),
                                       PolicyNamed("triforce")};
constexpr Proposer kProposers[] = {Proposer::kNgram, Proposer::kSelf,
                                   Proposer::kSmall};

TEST_F(CostRatioTest, WithoutRatesItIsEight) {
  for (const PolicyKind* policy : kPolicies) {
    for (const Proposer proposer : kProposers) {
      const Ratios ratios = RatiosOf({.policy = policy, .proposer = proposer});
      EXPECT_EQ(ratios.outer, 8);
      EXPECT_EQ(ratios.inner, policy == PolicyNamed("triforce") ? 8 : 0);
    }
  }
}

TEST_F(CostRatioTest, IsWhatTheUserSays) {
  Keep(kNoPositions, 0);
  for (const Proposer proposer : kProposers) {
    EXPECT_EQ(RatiosOf({.policy = PolicyNamed("triforce"),
                        .proposer = proposer,
                        .gamma1 = DraftLength::Adaptive(2.5)}),
              (Ratios{2.5, 2.5}));
  }
}

TEST_F(CostRatioTest, OfTheTextItselfIsAPassInRows) {
  Keep(kNoPositions, 0);
  const PolicyParams ngram = {.proposer = Proposer::kNgram};
  EXPECT_EQ(RatiosOf(ngram), (Ratios{0, 16}));
  // A draft of the view is a whole pass if positions cost nothing.
  EXPECT_EQ(RatiosOf({.policy = PolicyNamed("triforce"),
                      .proposer = Proposer::kNgram}),
            (Ratios{16, 1}));
}

TEST_F(CostRatioTest, OfFewerLayersIsMore) {
  Keep(kNoPositions, 0);
  PolicyParams self = {.proposer = Proposer::kSelf};
  EXPECT_EQ(RatiosOf(self), (Ratios{0, 1}));
  self.draft_layers = 1;
  EXPECT_EQ(RatiosOf(self), (Ratios{0, static_cast<double>(layers_)}));
  self.policy = PolicyNamed("triforce");
  EXPECT_EQ(RatiosOf(self), (Ratios{static_cast<double>(layers_), 1}));
}

// A pass reads the weights: a model of three times the layers takes longer.
TEST_F(CostRatioTest, OfASmallerModelIsMore) {
  const auto deep =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 1}});
  Keep(kNoPositions, 0, *deep);
  const double bytes = static_cast<double>(deep->weights->bytes_per_token()) /
                       static_cast<double>(model_->weights->bytes_per_token());
  const double ratio = std::exp2(std::round(std::log2(bytes)));
  ASSERT_GE(ratio, 2);
  const PolicyParams small = {.proposer = Proposer::kSmall};
  EXPECT_EQ(RatiosOf(small, *deep), (Ratios{0, ratio}));
  EXPECT_EQ(RatiosOf({.policy = PolicyNamed("triforce"),
                      .proposer = Proposer::kSmall},
                     *deep)
                .inner,
            ratio);
}

TEST_F(CostRatioTest, OfALongTextIsMore) {
  Rates positions = kNoPositions;
  positions.step_position_s = 1e6;  // everything else costs nothing beside it
  Keep(positions, 0);
  // 1,001 positions against the view's 128 give 8 after rounding; against the
  // 72 of its window and sinks, 16.
  EXPECT_EQ(RatiosOf({.policy = PolicyNamed("triforce"),
                      .proposer = Proposer::kNgram})
                .outer,
            8);
  EXPECT_EQ(RatiosOf({.proposer = Proposer::kSelf}).outer, 16);
  EXPECT_EQ(RatiosOf({.proposer = Proposer::kSmall}).outer, 512);  // to 2
}

// Adaptive branches wait until a sweep costs as much as 64 passes.
TEST_F(CostRatioTest, BranchesAreThereOverALongText) {
  constexpr RetrievalSize kSmallest = {
      .chunk = 8, .budget = 8, .sink = 8, .window = 1};
  Rates costs = kNoPositions;
  costs.step_position_s = 1e6;
  for (const auto& [length, branches] : {std::pair(700, 0), {1000, 4}}) {
    const auto session = Session::Create(*model_, {.retrieval = kSmallest});
    ASSERT_TRUE(session.ok()) << session.status();
    const std::vector<int32_t> ids(static_cast<size_t>(length), 1);
    ASSERT_TRUE((*session)->Append(ids.data(), ids.size()).ok());
    PolicyParams params = {.policy = PolicyNamed("triforce"),
                           .branches = PolicyParams::kAdaptive,
                           .costs = costs};
    // 701 positions against the view's 17 give 32 after rounding, 1,001 64.
    EXPECT_EQ((PolicyParts{**session, params, nullptr, {}}.Branches()),
              branches);
    params.branches = 3;
    EXPECT_EQ((PolicyParts{**session, params, nullptr, {}}.Branches()), 3);
  }
}

// The README and the help state these default lengths of blocks.
TEST_F(CostRatioTest, LengthsThatNobodyAskedForStayTheSame) {
  // The model itself proposes over a view, as many tokens as it is asked for.
  for (const auto& [name, tokens] :
       {std::pair(PolicyNamed("full"), 8), {PolicyNamed("triforce"), 16}}) {
    const auto session = Session::Create(*model_, {.retrieval = kView});
    ASSERT_TRUE(session.ok()) << session.status();
    const std::vector<int32_t> ids(20, 1);
    ASSERT_TRUE((*session)->Append(ids.data(), ids.size()).ok());
    const auto policy =
        NewPolicy(**session, {.policy = name, .proposer = Proposer::kSelf});
    ASSERT_TRUE(policy.ok()) << policy.status();
    ASSERT_TRUE((*policy)->Begin({}, /*seed=*/1).ok());
    for (const int drafted : {0, tokens}) {  // the first token is known
      const auto block = (*policy)->NextBlock();
      ASSERT_TRUE(block.ok()) << block.status();
      EXPECT_EQ(block->drafted, static_cast<size_t>(drafted));
    }
  }
}

// A command prints the same text, whatever is measured later.
TEST_F(CostRatioTest, StaysWhatItWasAtFirst) {
  Keep(kNoPositions, /*spread=*/9);
  const PolicyParams ngram = {.proposer = Proposer::kNgram};
  Rates faster = kNoPositions;
  faster.prompt_row_s /= 64;
  const KeptRates kept = Keep(faster, /*spread=*/0);
  EXPECT_EQ(kept.best.rates.prompt_row_s, faster.prompt_row_s);
  EXPECT_EQ(RatiosOf(ngram).outer, 16);
  EXPECT_EQ(*RatesCache(folder_).Clear(), 1);
  Keep(faster, /*spread=*/0);
  EXPECT_EQ(RatiosOf(ngram).outer, 1024);
}

}  // namespace
}  // namespace tiercel::draft_costs_test
