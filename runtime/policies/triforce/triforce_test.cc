// TriForce end to end: drafts over a retrieval view and two levels of checks
// give the text that there would be without them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::triforce_test {
namespace {

class TriForceTest : public RepeatedTextTest<5> {
 protected:
  static std::unique_ptr<Session> WithView(const RetrievalSize& size,
                                           const Model& model = *model_,
                                           Session::Options options = {}) {
    options.retrieval = size;
    return Prefilled(model, *prompt_, options);
  }

  static GenerateParams Params(float temperature, int64_t max_tokens = 60) {
    return DraftedParams(temperature, max_tokens);
  }

  static Ids Plain(const GenerateParams& params) {
    return PlainText(*model_, *prompt_, params);
  }

  static std::vector<PolicyParams> Choices(VerifyMode verify) {
    return {
        {.policy = PolicyNamed("triforce"),
         .verify = verify,
         .gamma2 = DraftLength::Fixed(5)},
        {.policy = PolicyNamed("triforce"),
         .proposer = Proposer::kNgram,
         .verify = verify,
         .gamma1 = DraftLength::Fixed(3),
         .gamma2 = DraftLength::Fixed(9)},
        {.policy = PolicyNamed("triforce"),
         .proposer = Proposer::kSelf,
         .verify = verify,
         .gamma1 = DraftLength::Fixed(2),
         .gamma2 = DraftLength::Fixed(63)},
        {.proposer = Proposer::kSelf,
         .verify = verify,
         .gamma1 = DraftLength::Fixed(4)},
        {.proposer = Proposer::kSelf,
         .verify = verify,
         .gamma1 = DraftLength::Fixed(6),
         .draft_layers = 1},
        {.policy = PolicyNamed("triforce"),
         .proposer = Proposer::kNgram,
         .verify = verify,
         .gamma1 = DraftLength::Fixed(2),
         .gamma2 = DraftLength::Fixed(7),
         .branches = 3},
    };
  }
};

TEST_F(TriForceTest, CoupledTextIsThatOfNoDrafter) {
  std::vector<DraftLevel> sums(9);
  int64_t held_in_greedy_branches = 0;
  for (float temperature : {0.0f, 0.6f, 1.0f}) {
    const GenerateParams params = Params(temperature);
    const Ids expected = Plain(params);
    for (const RetrievalSize& size :
         {kSmallView, RetrievalSize{8, 8, 8, 1}, RetrievalSize{32, 64, 1, 40},
          RetrievalSize{128, 128, 1, 7}, RetrievalSize{16, 4096, 1, 64},
          RetrievalSize{1, 64, 4, 40, kDraftSelection}}) {
      size_t sum = 0;
      for (const PolicyParams& choice : Choices(VerifyMode::kCoupled)) {
        const auto session = WithView(size);
        const Report report = GenerateDrafted(*session, params, choice);
        ASSERT_EQ(report.tokens, expected)
            << temperature << ", chunk " << size.chunk << ", budget "
            << size.budget << ", drafter " << sum;
        for (const DraftLevel& level : report.rounds.levels) {
          sums[sum].drafter = level.drafter;
          sums[sum].drafted += level.drafted;
          sums[sum].branches += level.branches;
          sums[sum].branch_accepted += level.branch_accepted;
          if (temperature == 0) {
            held_in_greedy_branches += level.branch_accepted;
          }
          sums[sum++].accepted += level.accepted;
        }
        ExpectNoTrace(*session, *model_);
      }
    }
  }
  // On every level some drafts hold and some do not.
  for (size_t i = 0; i < sums.size(); ++i) {
    const DraftLevel& level = sums[i];
    EXPECT_GT(level.accepted, 0) << level.drafter;
    EXPECT_LT(level.accepted, level.drafted) << level.drafter;
    // One choice has branches.
    EXPECT_EQ(level.branches > 0, i == 8) << i;
    EXPECT_EQ(level.branch_accepted > 0, i == 8) << i;
  }
  EXPECT_GT(held_in_greedy_branches, 0);
}

// Costs decide once for a session.
TEST_F(TriForceTest, AdaptiveBranchesAreThereWhereASweepIsDear) {
  PolicyParams choice = Choices(VerifyMode::kCoupled)[5];
  choice.branches = PolicyParams::kAdaptive;
  EXPECT_EQ(choice.OptionsFor(*model_, {}).branches, 4);
  const GenerateParams params = Params(0.8f);
  const auto branches = [&] {
    const Report report =
        GenerateDrafted(*WithView(kSmallView), params, choice);
    EXPECT_EQ(report.tokens, Plain(params));
    return report.rounds.levels.back().branches;
  };
  EXPECT_EQ(branches(), 0);  // no costs are known
  choice.cost_ratio = 63.9;
  EXPECT_EQ(branches(), 0);
  choice.cost_ratio = 64;
  EXPECT_GT(branches(), 0);
}

// Penalties of a branch's tokens see those of the block before it.
TEST_F(TriForceTest, BranchesAreJudgedBehindTheirBlock) {
  PolicyParams choice = Choices(VerifyMode::kCoupled)[5];
  choice.branches = 8;
  int64_t held = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    GenerateParams params = Params(0.9f, 120);
    params.seed = seed;
    params.distribution.repeat_penalty = 1.2f;
    params.distribution.dry = StrictDry();
    params.distribution.dry.multiplier = 5;
    const Report report =
        GenerateDrafted(*WithView({32, 128, 1, 60}), params, choice);
    EXPECT_EQ(report.tokens, Plain(params));
    held += report.rounds.levels.back().branch_accepted;
  }
  EXPECT_GT(held, 20);
}

// Branches are swept over pages of their own, for which memory is planned.
TEST_F(TriForceTest, BranchesBehindALinkGiveTheSameText) {
  const auto deep =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  Session::Options options = {.context = 500};
  PolicyParams choice = Choices(VerifyMode::kResidual)[5];
  choice.view = kSmallView;
  options = choice.OptionsFor(*deep, options);
  EXPECT_EQ(options.branches, 3);
  const GenerateParams params = Params(0.8f, 120);
  const auto in_place = Prefilled(*deep, *prompt_, options);
  const Report expected = GenerateDrafted(*in_place, params, choice);
  for (Budget budget : {Budget::kLeast, Budget::kMiddle, Budget::kAll}) {
    const Tiered tiered = MakeTiered(*deep, options, budget);
    Session& session = *tiered.session;
    ASSERT_TRUE(
        Prefill(session, prompt_->data(), prompt_->size(), kNoProgress).ok());
    const Report report = GenerateDrafted(session, params, choice);
    ASSERT_TRUE(report.status.ok()) << report.status;
    EXPECT_EQ(report.tokens, expected.tokens);
    EXPECT_EQ(report.rounds.levels.back().branches,
              expected.rounds.levels.back().branches);
    EXPECT_GT(report.rounds.levels.back().branch_accepted, 0);
    ExpectNoTrace(session, *deep);
  }
}

// A view that holds everything gives the target's distribution: its drafts
// always hold, except where sums in another order change the last bits and a
// draw shows it.
TEST_F(TriForceTest, AViewOfEverythingIsNeverRejected) {
  const GenerateParams params = Params(0.8f, 100);
  for (const PolicyParams& choice : Choices(VerifyMode::kCoupled)) {
    if (choice.policy != PolicyNamed("triforce")) continue;
    const auto session = WithView({16, 4096, 1, 16});
    const Report report = GenerateDrafted(*session, params, choice);
    EXPECT_EQ(report.tokens, Plain(params));
    const DraftLevel& level = report.rounds.levels.back();
    EXPECT_GT(level.drafted, 80);
    EXPECT_GE(level.accepted, level.drafted - 2)
        << static_cast<int>(choice.proposer);
  }
}

// Residual texts differ from the plain one, but are the same every time,
// whatever the length asked for.
TEST_F(TriForceTest, ResidualTextsReplay) {
  for (const PolicyParams& choice : Choices(VerifyMode::kResidual)) {
    const GenerateParams params = Params(1.0f, 40);
    const auto session = WithView(kSmallView);
    const Ids all = DraftedText(*session, params, choice);
    ExpectNoTrace(*session, *model_);
    for (int64_t length : {40, 1, 2, 7, 39}) {
      session->Truncate(prompt_->size());
      ASSERT_EQ(DraftedText(*session, Params(1.0f, length), choice),
                Ids(all.begin(), all.begin() + length))
          << length;
    }
    const auto fresh = WithView(kSmallView);
    EXPECT_EQ(DraftedText(*fresh, params, choice), all);
    GenerateParams other = params;
    other.seed = 8;
    EXPECT_NE(DraftedText(*WithView(kSmallView), other, choice), all);
    const GenerateParams greedy = Params(0.0f, 40);
    EXPECT_EQ(DraftedText(*WithView(kSmallView), greedy, choice),
              Plain(greedy));
  }
}

// The text goes far beyond the view: every chunk leaves and others come.
TEST_F(TriForceTest, AnOutputLongerThanTheView) {
  const GenerateParams params = Params(0.9f, 400);
  const Ids expected = Plain(params);
  for (const PolicyParams& choice : Choices(VerifyMode::kCoupled)) {
    const auto session = WithView(kSmallView);
    ASSERT_EQ(DraftedText(*session, params, choice), expected);
    ExpectNoTrace(*session, *model_);
  }
}

TEST_F(TriForceTest, ShortPromptsAndFullContexts) {
  for (size_t length : {1, 2, 9, 63, 64, 65, 129}) {
    const Ids prompt(prompt_->begin(),
                     prompt_->begin() + static_cast<std::ptrdiff_t>(length));
    const Session::Options options = {
        .context = static_cast<int64_t>(length) + 70, .retrieval = kSmallView};
    GenerateParams params = Params(0.7f, 0);
    params.max_tokens = 0;
    const auto plain = MakeSession(*model_, {.context = options.context});
    ASSERT_TRUE(Prefill(*plain, prompt.data(), length, kNoProgress).ok());
    const Report expected = Generate(*plain, params, nullptr);
    ASSERT_TRUE(expected.status.ok()) << expected.status;
    for (const PolicyParams& choice : Choices(VerifyMode::kCoupled)) {
      const auto session = MakeSession(*model_, options);
      ASSERT_TRUE(Prefill(*session, prompt.data(), length, kNoProgress).ok());
      EXPECT_EQ(DraftedText(*session, params, choice), expected.tokens)
          << length;
      EXPECT_EQ(session->sequence().room(), 0);
    }
  }
}

// Follow-up prompts, truncation, forks, and a sequence that begins anywhere.
TEST_F(TriForceTest, WhateverCameBefore) {
  const GenerateParams params = Params(0.8f, 30);
  const PolicyParams choice = Choices(VerifyMode::kResidual)[1];
  const Ids first = DraftedText(*WithView(kSmallView), params, choice);

  const auto session = WithView(kSmallView);
  const absl::StatusOr<std::unique_ptr<Session>> early = session->Fork();
  ASSERT_TRUE(early.ok());
  EXPECT_EQ(DraftedText(**early, params, choice), first);
  EXPECT_EQ(DraftedText(*session, params, choice), first);
  const Ids more(prompt_->begin() + 7, prompt_->begin() + 90);
  ASSERT_TRUE(Prefill(*session, more.data(), more.size(), kNoProgress).ok());
  const Ids second = DraftedText(*session, params, choice);

  Ids all = *prompt_;
  all.insert(all.end(), first.begin(), first.end());
  all.insert(all.end(), more.begin(), more.end());
  const auto fresh = MakeSession(*model_, {.retrieval = kSmallView});
  ASSERT_TRUE(Prefill(*fresh, all.data(), all.size(), kNoProgress).ok());
  EXPECT_EQ(DraftedText(*fresh, params, choice), second);

  session->Truncate(prompt_->size());
  EXPECT_EQ(DraftedText(*session, params, choice), first);
  session->Truncate(prompt_->size());
  const absl::StatusOr<std::unique_ptr<Session>> fork = session->Fork();
  ASSERT_TRUE(fork.ok());
  EXPECT_EQ(DraftedText(**fork, params, choice), first);
  EXPECT_EQ(DraftedText(*session, params, choice), first);
  ExpectNoTrace(**fork, *model_);
  ExpectNoTrace(*session, *model_);

  GenerateParams coupled = params;
  for (int64_t position : {3, 1000}) {
    const auto moved =
        WithView(kSmallView, *model_, {.first_position = position});
    const auto plain = MakeSession(*model_, {.first_position = position});
    ASSERT_TRUE(
        Prefill(*plain, prompt_->data(), prompt_->size(), kNoProgress).ok());
    EXPECT_EQ(DraftedText(*moved, coupled, Choices(VerifyMode::kCoupled)[1]),
              Generate(*plain, coupled, nullptr).tokens);
  }
}

TEST_F(TriForceTest, BehindALinkTheTextIsTheSame) {
  const auto deep =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  for (DType type : {DType::kF16, DType::kF32}) {
    Session::Options options = {.context = 500, .type_k = type, .type_v = type};
    options.retrieval = kSmallView;
    const auto in_place = WithView(kSmallView, *deep, options);
    const PolicyParams residual = Choices(VerifyMode::kResidual)[1];
    const GenerateParams params = Params(0.8f, 120);
    const Ids expected = DraftedText(*in_place, params, residual);
    for (Budget budget : {Budget::kLeast, Budget::kMiddle, Budget::kAll}) {
      const Tiered tiered = MakeTiered(*deep, options, budget);
      Session& session = *tiered.session;
      ASSERT_TRUE(
          Prefill(session, prompt_->data(), prompt_->size(), kNoProgress).ok());
      ASSERT_EQ(DraftedText(session, params, residual), expected);
      const Traffic traffic = session.traffic();
      const auto phase = [&](Phase name) {
        return traffic.link[static_cast<size_t>(name)];
      };
      EXPECT_EQ(phase(Phase::kDraft).h2d_bytes, 0u);
      EXPECT_EQ(static_cast<int64_t>(phase(Phase::kRefresh).h2d_bytes),
                traffic.moves.gathered_bytes);
      if (budget == Budget::kLeast) {
        EXPECT_GT(traffic.moves.gathered_bytes, 0);
      }
      ExpectNoTrace(session, *deep, {.type_k = type, .type_v = type});
    }
  }
}

// Stopped at every token and in every layer of a draft, the session is as it
// was, and the same request gives the same tokens.
TEST_F(TriForceTest, CancelledAnywhereItIsAsItWas) {
  const GenerateParams params = Params(0.9f, 20);
  for (const PolicyParams& choice : Choices(VerifyMode::kResidual)) {
    const auto session = WithView(kSmallView);
    const Ids expected = StoppedAnywhere(*session, params, choice);
    ExpectNoTrace(*session, *model_);
    session->Truncate(prompt_->size());
    EXPECT_EQ(DraftedText(*session, params, choice), expected);
  }
}

// The view of an interrupted prompt is selected as that of an uninterrupted
// one.
TEST_F(TriForceTest, AResumedPromptIsAPrompt) {
  const GenerateParams params = Params(0.8f, 30);
  const PolicyParams choice = Choices(VerifyMode::kResidual)[1];
  const auto whole = WithView(kSmallView);
  const Report expected = GenerateDrafted(*whole, params, choice);
  ASSERT_TRUE(expected.status.ok()) << expected.status;
  for (const bool prefilled : {true, false}) {
    const auto session = MakeSession(*model_, {.retrieval = kSmallView});
    const absl::Status stopped =
        Prefill(*session, prompt_->data(), prompt_->size(),
                [](uint64_t done, uint64_t total) { return 2 * done < total; })
            .status();
    ASSERT_EQ(ClassOf(stopped), ErrorClass::kCancelled);
    if (prefilled) {
      ASSERT_TRUE(
          Prefill(*session, prompt_->data(), prompt_->size(), kNoProgress)
              .ok());
    } else {
      ASSERT_TRUE(session->Append(prompt_->data(), prompt_->size()).ok());
    }
    const Report report = GenerateDrafted(*session, params, choice);
    EXPECT_EQ(report.tokens, expected.tokens);
    EXPECT_EQ(report.rounds.levels.back().drafted,
              expected.rounds.levels.back().drafted);
    ExpectNoTrace(*session, *model_);
  }
}

// A draft uses the memory in which an interrupted prompt keeps its hidden
// states, so that prompt begins anew.
TEST_F(TriForceTest, ADraftEndsAnInterruptedPrompt) {
  const auto plain = WithView(kSmallView);
  const auto session = WithView(kSmallView);
  ASSERT_TRUE(session->draft_view().CatchUp(Phase::kVerify).ok());
  const Ids more(prompt_->begin(), prompt_->begin() + 200);
  const absl::Status stopped =
      Prefill(*session, more.data(), more.size(),
              [](uint64_t done, uint64_t total) { return 2 * done < total; })
          .status();
  ASSERT_EQ(ClassOf(stopped), ErrorClass::kCancelled);
  const int64_t end = session->draft_view().first().kv().end();
  ASSERT_TRUE(session->draft_view()
                  .Forward(more.data(), 3, model_->config.layers)
                  .ok());
  session->draft_view().first().kv().Truncate(end);
  for (Session* const one : {plain.get(), session.get()}) {
    ASSERT_TRUE(Prefill(*one, more.data(), more.size(), kNoProgress).ok());
  }
  EXPECT_EQ(NextLogits(*session), NextLogits(*plain));
}

// Half the model drafts other tokens than all of it.
TEST_F(TriForceTest, FewerLayersDraftOtherTokens) {
  const GenerateParams params = Params(0.8f);
  const auto held = [&](PolicyParams choice, int layers) {
    choice.draft_layers = layers;
    const auto session = WithView(kSmallView);
    const Report report = GenerateDrafted(*session, params, choice);
    EXPECT_EQ(report.tokens, Plain(params)) << layers;
    const DraftLevel& level = report.rounds.levels.front();
    EXPECT_STREQ(level.drafter, "self");
    return std::pair(level.drafted, level.accepted);
  };
  for (const size_t i : {size_t{2}, size_t{3}}) {
    const PolicyParams choice = Choices(VerifyMode::kCoupled)[i];
    EXPECT_NE(held(choice, 1), held(choice, 0)) << i;
    EXPECT_EQ(held(choice, model_->config.layers), held(choice, 0)) << i;
  }

  for (const int wrong : {-1, model_->config.layers + 1}) {
    EXPECT_EQ(CodeOf(CheckPolicy(*model_, {.proposer = Proposer::kSelf,
                                           .draft_layers = wrong})),
              "invalid_argument");
  }
}

// A draft's distribution leaves out tokens that would hardly ever be drawn.
TEST_F(TriForceTest, DraftsAreOfWhatIsLikely) {
  const auto session = WithView(kSmallView);
  ASSERT_TRUE(session->draft_view().CatchUp(Phase::kVerify).ok());
  const int32_t next = session->sequence().tokens().front();
  ASSERT_TRUE(session->Append(&next, 1).ok());
  const InnermostDrafter self(*session, {.temperature = 0.02f},
                              {.kind = Proposer::kSelf});
  const auto block = self.drafter()->Draft(
      session->sequence().tokens(), 8,
      {.seed = 7, .start = std::ssize(session->sequence().tokens())});
  ASSERT_TRUE(block.ok()) << block.status();
  ASSERT_EQ(block->distributions.size(), 8u);
  for (const Distribution& distribution : block->distributions) {
    EXPECT_LT(std::ssize(distribution.ids), model_->config.vocab / 2);
  }
}

TEST_F(TriForceTest, AViewIsAsLargeAsThoseWhoDraftNeed) {
  constexpr RetrievalSize kView = {
      .chunk = 16, .budget = 256, .sink = 48, .window = 80};
  const auto view = [&](const PolicyKind* policy, Proposer proposer) {
    return PolicyParams{.policy = policy, .proposer = proposer, .view = kView}
        .RetrievalView();
  };
  EXPECT_FALSE(view(PolicyNamed("full"), Proposer::kNgram).has_value());
  const auto whole = view(PolicyNamed("triforce"), Proposer::kSelf);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->chunk, 16);
  EXPECT_EQ(whole->budget, 256);
  // A proposer over a window of the view: no chunks are selected.
  const auto window = view(PolicyNamed("full"), Proposer::kSelf);
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(window->budget, 48);
  EXPECT_EQ(window->sink, 48);
  EXPECT_EQ(window->window, 80);
}

TEST_F(TriForceTest, NeedsAViewThatFits) {
  for (const RetrievalSize& size :
       {RetrievalSize{24, 64, 1, 8}, RetrievalSize{4, 64, 1, 8},
        RetrievalSize{256, 256, 1, 8}, RetrievalSize{8, 8, 9, 8},
        RetrievalSize{32, 16, 17, 8}, RetrievalSize{8, 0, 1, 8},
        RetrievalSize{8, 64, 0, 8}, RetrievalSize{8, 64, 1, 0},
        RetrievalSize{8, -1, 1, 1}, RetrievalSize{8, int64_t{1} << 40, 1, 1}}) {
    EXPECT_EQ(CodeOf(Session::Create(*model_, {.retrieval = size}).status()),
              "invalid_argument");
  }
}

}  // namespace
}  // namespace tiercel::triforce_test
