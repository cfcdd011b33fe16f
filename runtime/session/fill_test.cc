// KV that was filled, not computed: later calls read it wherever it lies, as
// they would a prompt's.

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/sadas/sadas_params.h"
#include "runtime/policies/sfi/sfi_params.h"
#include "tests/drafting.h"
#include "tests/tiers.h"

namespace tiercel::fill_test {
namespace {

class FillTest : public RepeatedTextTest<14> {
 protected:
  static std::unique_ptr<Session> Filled(uint64_t seed, size_t length,
                                         const Session::Options& options = {}) {
    auto session = MakeSession(*model_, options);
    EXPECT_TRUE(
        FillPrompt(*session, prompt_->data(), length, seed, kNoProgress).ok());
    EXPECT_EQ(session->sequence().pending(), 0);
    EXPECT_EQ(session->sequence().tokens(),
              Ids(prompt_->begin(),
                  prompt_->begin() + static_cast<std::ptrdiff_t>(length)));
    return session;
  }
  static Ids Tail() { return {prompt_->begin(), prompt_->begin() + 40}; }
};

// More than one block of rows is written.
TEST_F(FillTest, FollowsFromTheSeedAlone) {
  const size_t length = 800;
  const auto logits = [&](uint64_t seed) {
    return AllLogits(*Filled(seed, length), Tail(), 7);
  };
  const std::vector<float> first = logits(1);
  EXPECT_EQ(logits(1), first);
  EXPECT_NE(logits(2), first);
  EXPECT_NE(AllLogits(*Prefilled(*model_, *prompt_), Tail(), 7), first);
}

// More tokens may follow it, and its end can be cut.
TEST_F(FillTest, IsAPromptToWhatFollows) {
  const auto session = Filled(3, 600);
  const std::vector<float> after = AllLogits(*session, Tail(), 5);
  session->Truncate(600);
  session->DropProvisional();
  EXPECT_EQ(session->sequence().kv_length(), 600);
  EXPECT_EQ(AllLogits(*session, Tail(), 5), after);
}

TEST_F(FillTest, LiesOnEitherSideOfALink) {
  const auto deep =
      OpenModel({.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  PolicyParams sfi = {.policy = PolicyNamed("sfi"), .form = PolicyForm::kPlain};
  sfi.Own<SfiParams>().budget = 64;
  sfi.Own<SfiParams>().sink = 2;
  sfi.Own<SfiParams>().window = 20;
  ASSERT_TRUE(sfi.Own<SfiParams>().Set("trigger=fixed,interval=8,gap=1").ok());
  const PolicyParams triforce = {.policy = PolicyNamed("triforce"),
                                 .verify = VerifyMode::kCoupled,
                                 .view = kSmallView};
  for (const PolicyParams& policy : {PolicyParams(), sfi, triforce}) {
    const Session::Options options =
        policy.OptionsFor(*model_, {.context = 900});
    // The first begins within a page; the second has fewer rows than a prompt.
    const auto text = [&](Session& session) {
      EXPECT_TRUE(Prefill(session, prompt_->data(), 50, kNoProgress).ok());
      for (const size_t rows : {600, 100}) {
        EXPECT_TRUE(
            FillPrompt(session, prompt_->data(), rows, 9, kNoProgress).ok());
      }
      return DraftedText(session, DraftedParams(0.8f, 40), policy);
    };
    const Ids expected = text(*MakeSession(*deep, options));
    for (const Budget budget : {Budget::kLeast, Budget::kAll}) {
      const Tiered tiered = MakeTiered(*deep, options, budget);
      EXPECT_EQ(text(*tiered.session), expected) << policy.policy->name();
    }
  }
}

TEST_F(FillTest, CancelledItWasNeverThere) {
  const auto session = Filled(4, 300);
  const std::vector<float> expected = AllLogits(*Filled(4, 300), Tail(), 5);
  const Ids more(900, 5);
  int asked = 0;
  EXPECT_EQ(ClassOf(FillPrompt(*session, more.data(), more.size(), 1,
                               [&](uint64_t done, uint64_t total) {
                                 EXPECT_EQ(total, 900u);
                                 EXPECT_EQ(done, asked == 0 ? 0u : 512u);
                                 return ++asked < 2;
                               })
                        .status()),
            ErrorClass::kCancelled);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(session->sequence().tokens().size(), 300u);
  EXPECT_EQ(AllLogits(*session, Tail(), 5), expected);

  session->Truncate(300);
  session->cancellation().Cancel();
  EXPECT_EQ(
      ClassOf(FillPrompt(*session, more.data(), 1, 1, kNoProgress).status()),
      ErrorClass::kCancelled);
  session->cancellation().Clear();
  EXPECT_EQ(session->sequence().tokens().size(), 300u);
}

// Rows of an earlier answer that the KV lacks are computed, not filled, whether
// the call ends or is stopped.
TEST_F(FillTest, WhatWasThereIsComputed) {
  PolicyParams sadas = {.policy = PolicyNamed("sadas"),
                        .form = PolicyForm::kPlain};
  sadas.Own<SadasParams>().window = 16;
  ASSERT_TRUE(sadas.Own<SadasParams>().Set("gate=always").ok());
  for (const PolicyParams& policy : {PolicyParams(), sadas}) {
    const auto session =
        Prefilled(*model_, Tail(), policy.OptionsFor(*model_, {}));
    const Ids answer = DraftedText(*session, DraftedParams(0.8f, 30), policy);
    Ids text = Tail();
    text.insert(text.end(), answer.begin(), answer.end());
    const std::vector<float> expected = AllLogits(
        *Prefilled(*model_, text, policy.OptionsFor(*model_, {})), Tail(), 5);

    const Ids more(900, 5);
    EXPECT_EQ(
        ClassOf(FillPrompt(*session, more.data(), more.size(), 1,
                           [](uint64_t done, uint64_t) { return done < 512; })
                    .status()),
        ErrorClass::kCancelled);
    ASSERT_EQ(session->sequence().tokens(), text);
    const auto fork = session->Fork();
    ASSERT_TRUE(fork.ok());
    EXPECT_EQ(AllLogits(**fork, Tail(), 5), expected);

    ASSERT_TRUE(
        FillPrompt(*session, more.data(), more.size(), 1, kNoProgress).ok());
    session->Truncate(text.size());
    EXPECT_EQ(AllLogits(*session, Tail(), 5), expected);
  }
}

// Selectors forget the notes they took of a prompt that was stopped.
TEST_F(FillTest, AStoppedPromptIsForgotten) {
  PolicyParams sfi = {.policy = PolicyNamed("sfi"), .form = PolicyForm::kPlain};
  sfi.Own<SfiParams>().budget = 32;
  sfi.Own<SfiParams>().sink = 2;
  sfi.Own<SfiParams>().window = 20;
  ASSERT_TRUE(sfi.Own<SfiParams>().Set("trigger=fixed,interval=8,gap=1").ok());
  for (const int chunk : {1, 8}) {
    sfi.Own<SfiParams>().chunk = chunk;
    const auto text = [&](bool stopped) {
      auto session = Prefilled(*model_, Tail(), sfi.OptionsFor(*model_, {}));
      if (stopped) {
        const absl::StatusOr<PrefillReport> prefill = Prefill(
            *session, prompt_->data() + 40, 300,
            [](uint64_t done, uint64_t total) { return done < total / 2 + 1; });
        EXPECT_EQ(ClassOf(prefill.status()), ErrorClass::kCancelled);
      }
      EXPECT_TRUE(
          FillPrompt(*session, prompt_->data(), 400, 2, kNoProgress).ok());
      return DraftedText(*session, DraftedParams(0.8f, 40), sfi);
    };
    EXPECT_EQ(text(true), text(false)) << chunk;
  }
}

TEST_F(FillTest, IsRefusedWherePromptsAreShallow) {
  const auto session =
      MakeSession(*model_, {.extent = KvExtent{.full_layers = 1}});
  EXPECT_EQ(
      CodeOf(FillPrompt(*session, prompt_->data(), 9, 1, kNoProgress).status()),
      "invalid_argument");
  EXPECT_TRUE(session->sequence().tokens().empty());
}

}  // namespace
}  // namespace tiercel::fill_test
