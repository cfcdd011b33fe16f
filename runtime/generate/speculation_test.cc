// Speculation end to end: the text is the target's, and drafts that did not
// hold leave no trace.

#include <algorithm>
#include <string>
#include <vector>

#include "drafts/ngram.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/plan/session_plan.h"
#include "tests/drafting.h"
#include "tests/golden.h"

namespace tiercel::speculation_test {
namespace {

class SpeculationTest : public RepeatedTextTest<3> {
 protected:
  static ScriptedParams Params(float temperature, int64_t max_tokens = 60) {
    ScriptedParams params = DraftedParams(temperature, max_tokens);
    params.verify = VerifyMode::kCoupled;
    return params;
  }

  static Report Generated(Session& session, const ScriptedParams& params) {
    Report report = Generate(session, params, nullptr);
    EXPECT_TRUE(report.status.ok()) << report.status;
    return report;
  }
  static Ids Continued(Session& session, const ScriptedParams& params) {
    return Generated(session, params).tokens;
  }
};

TEST_F(SpeculationTest, CoupledTextIsThatOfNoDrafter) {
  NgramDrafter ngram(/*longest=*/3, /*shortest=*/1);
  int64_t drafted = 0;
  int64_t accepted = 0;
  for (float temperature : {0.0f, 0.6f, 1.0f}) {
    for (bool penalised : {false, true}) {
      ScriptedParams params = Params(temperature);
      if (penalised) {
        params.distribution.repeat_penalty = 1.3f;
        params.distribution.dry = StrictDry();
      }
      const auto plain = Prefilled(*model_, *prompt_);
      const Report expected = Generated(*plain, params);
      EXPECT_EQ(expected.sweeps, 59);
      for (int64_t length : {1, 4, 63}) {
        params.drafter = &ngram;
        params.draft_length = DraftLength::Fixed(length);
        const auto session = Prefilled(*model_, *prompt_);
        const Report report = Generated(*session, params);
        ASSERT_EQ(report.tokens, expected.tokens)
            << temperature << " " << penalised << " " << length;
        ASSERT_EQ(session->sequence().tokens(), plain->sequence().tokens());
        const std::vector<DraftLevel>& levels = report.rounds.levels;
        ASSERT_EQ(levels.size(), 1u);
        EXPECT_STREQ(levels[0].drafter, "ngram");
        EXPECT_LE(report.sweeps, 59);
        drafted += levels[0].drafted;
        accepted += levels[0].accepted;
        ExpectNoTrace(*session, *model_);
      }
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(drafted - accepted, 100);
}

// DRY looks at the answer, over all the calls that made it, and not at
// repetitions of the prompt.
TEST_F(SpeculationTest, AnAnswerGoesOnUntilAPromptComes) {
  ScriptedParams params = Params(0.7f, 40);
  params.distribution.dry = StrictDry();
  // The prompt includes a text that the model made by itself.
  Ids prompt = *prompt_;
  const Ids own = Continued(*Prefilled(*model_, prompt), Params(0.0f, 60));
  prompt.insert(prompt.end(), own.begin(), own.end());
  const auto whole = Prefilled(*model_, prompt);
  EXPECT_EQ(whole->sequence().answer_begin(), std::ssize(prompt));
  const Ids expected = Continued(*whole, params);
  EXPECT_NE(Continued(*Prefilled(*model_, prompt), Params(0.7f, 40)), expected);
  EXPECT_EQ(whole->sequence().answer_begin(), std::ssize(prompt));

  const auto session = Prefilled(*model_, prompt);
  Ids text;
  for (int64_t some : {1, 9, 1, 29}) {
    params.max_tokens = some;
    const auto fork = session->Fork();
    ASSERT_TRUE(fork.ok()) << fork.status();
    EXPECT_EQ((*fork)->sequence().answer_begin(), std::ssize(prompt));
    const Ids tokens = Continued(*session, params);
    EXPECT_EQ(Continued(**fork, params), tokens);
    text.insert(text.end(), tokens.begin(), tokens.end());
  }
  EXPECT_EQ(text, expected);

  // Half of the answer is made again, and all of it after a prompt that fails.
  session->Truncate(prompt.size() + 20);
  params.max_tokens = 20;
  const Ids bad = {1, -1};
  EXPECT_FALSE(Prefill(*session, bad.data(), bad.size(), kNoProgress).ok());
  EXPECT_EQ(Continued(*session, params), Ids(text.begin() + 20, text.end()));
  session->Truncate(prompt.size());
  params.max_tokens = 40;
  EXPECT_EQ(Continued(*session, params), expected);

  // A prompt of these tokens is no answer.
  ASSERT_TRUE(Prefill(*session, expected.data(), 20, kNoProgress).ok());
  EXPECT_EQ(session->sequence().answer_begin(),
            std::ssize(session->sequence().tokens()));
  // The session is cut to before the answer's beginning.
  session->Truncate(5);
  EXPECT_EQ(session->sequence().answer_begin(), 5);
}

TEST_F(SpeculationTest, GreedyTextIsTheSameHoweverItIsVerified) {
  NgramDrafter ngram;
  ScriptedParams params = Params(0.0f);
  const Ids expected = Continued(*Prefilled(*model_, *prompt_), params);
  params.drafter = &ngram;
  params.verify = VerifyMode::kResidual;
  EXPECT_EQ(Continued(*Prefilled(*model_, *prompt_), params), expected);
}

TEST_F(SpeculationTest, WhatIsAlwaysRightAndWhatIsAlwaysWrong) {
  const ScriptedParams plain = Params(1.0f);
  const Ids expected = Continued(*Prefilled(*model_, *prompt_), plain);
  const size_t prompt = prompt_->size();
  const auto told = [&](int32_t off) {
    return ScriptedDrafter([&, off](const Ids& tokens, int64_t most) {
      Ids block;
      for (size_t i = tokens.size() - prompt;
           i < expected.size() && std::ssize(block) < most; ++i) {
        block.push_back((expected[i] + off) %
                        static_cast<int32_t>(model_->config.vocab));
      }
      return block;
    });
  };
  ScriptedDrafter right = told(0);
  ScriptedDrafter wrong = told(1);
  ScriptedParams params = plain;
  params.draft_length = DraftLength::Fixed(5);
  params.drafter = &right;
  const auto session = Prefilled(*model_, *prompt_);
  const Report all = Generated(*session, params);
  EXPECT_EQ(all.tokens, expected);
  EXPECT_EQ(all.rounds.levels[0].accepted, all.rounds.levels[0].drafted);
  // The first token is known; then each sweep gives six.
  EXPECT_EQ(all.sweeps, 10);
  // Tokens of the last six that are not in the text take no time.
  EXPECT_EQ(all.token_seconds.size(), expected.size());
  ExpectNoTrace(*session, *model_);

  // If nothing was prefilled, the report says so.
  const Report more = Generate(*session, Params(1.0f, 3), nullptr,
                               {.prompt_tokens = 1,
                                .cached_tokens = 0,
                                .spent = {.seconds = 1},
                                .traffic = {}});
  ASSERT_TRUE(more.status.ok());
  EXPECT_EQ(more.prefill.cached_tokens,
            std::ssize(session->sequence().tokens()) - 3);
  EXPECT_EQ(more.prefill.spent.seconds, 0);

  params.drafter = &wrong;
  const auto other = Prefilled(*model_, *prompt_);
  const Report none = Generated(*other, params);
  EXPECT_EQ(none.tokens, expected);
  EXPECT_EQ(none.rounds.levels[0].accepted, 0);
  EXPECT_EQ(none.sweeps, 59);
  ExpectNoTrace(*other, *model_);
}

// The last token's row is the first of a sweep, which checks drafts.
TEST_F(SpeculationTest, ATextThatGoesOnBeginsWithASweep) {
  ScriptedParams params = Params(1.0f, 18);
  const Ids expected = Continued(*Prefilled(*model_, *prompt_), params);
  const auto session = Prefilled(*model_, *prompt_);
  params.max_tokens = 6;
  Continued(*session, params);
  ScriptedDrafter right([&](const Ids& tokens, int64_t most) {
    const auto next = expected.begin() +
                      static_cast<std::ptrdiff_t>(tokens.size()) -
                      std::ssize(*prompt_);
    return Ids(next, next + std::min<int64_t>(most, expected.end() - next));
  });
  params.drafter = &right;
  params.draft_length = DraftLength::Fixed(5);
  params.max_tokens = 12;
  const Report report = Generated(*session, params);
  EXPECT_EQ(report.tokens, Ids(expected.begin() + 6, expected.end()));
  // Each sweep checks five drafts and gives one token more.
  EXPECT_EQ(report.sweeps, 2);
  EXPECT_EQ(report.rounds.levels[0].checked, 10);
}

TEST_F(SpeculationTest, ALengthIsAPrefixOfALongerOne) {
  NgramDrafter ngram(3, 1);
  for (VerifyMode mode : {VerifyMode::kResidual, VerifyMode::kCoupled}) {
    ScriptedParams params = Params(1.0f, 40);
    params.drafter = &ngram;
    params.verify = mode;
    const auto session = Prefilled(*model_, *prompt_);
    const Ids all = Continued(*session, params);
    for (int64_t length = 1; length < 40; ++length) {
      session->Truncate(prompt_->size());
      params.max_tokens = length;
      const Report report = Generated(*session, params);
      ASSERT_EQ(report.tokens, Ids(all.begin(), all.begin() + length));
      ASSERT_EQ(session->sequence().tokens().size(),
                prompt_->size() + static_cast<size_t>(length));
      ASSERT_EQ(report.token_seconds.size(), static_cast<size_t>(length));
    }
    ExpectNoTrace(*session, *model_);
  }
}

TEST_F(SpeculationTest, EndsInsideABlock) {
  // Every token is an end of text: the first one ends the output, whatever was
  // drafted behind it.
  ScriptedParams params = Params(0.0f);
  const Ids expected = Continued(*Prefilled(*model_, *prompt_), params);
  ScriptedDrafter right([&](const Ids& tokens, int64_t most) {
    const size_t done = tokens.size() - prompt_->size();
    const size_t end =
        std::min(expected.size(), done + static_cast<size_t>(most));
    return Ids(expected.begin() + static_cast<std::ptrdiff_t>(done),
               expected.begin() + static_cast<std::ptrdiff_t>(end));
  });
  params.drafter = &right;
  params.draft_length = DraftLength::Fixed(20);

  // The callback stops at any token of the block.
  for (size_t stop : {1, 2, 5, 21}) {
    const auto session = Prefilled(*model_, *prompt_);
    size_t count = 0;
    const Report report = Generate(
        *session, params, [&](const OutputToken&) { return ++count < stop; });
    EXPECT_EQ(ClassOf(report.status), ErrorClass::kCancelled);
    EXPECT_EQ(report.tokens,
              Ids(expected.begin(),
                  expected.begin() + static_cast<std::ptrdiff_t>(stop)));
    EXPECT_EQ(session->sequence().tokens().size(), prompt_->size() + stop);
    ExpectNoTrace(*session, *model_);
  }

  // A drafted token completes the stop text.
  const auto plain = Prefilled(*model_, *prompt_);
  ScriptedParams with_stop = params;
  with_stop.drafter = nullptr;
  const std::string text = Generated(*plain, with_stop).text;
  ASSERT_GT(text.size(), 12u);
  with_stop.stops = {text.substr(8, 3)};
  const auto stopped = Prefilled(*model_, *prompt_);
  const Report cut = Generated(*stopped, with_stop);
  EXPECT_LT(cut.tokens.size(), expected.size());
  with_stop.drafter = &right;
  const auto session = Prefilled(*model_, *prompt_);
  const Report report = Generated(*session, with_stop);
  EXPECT_EQ(report.tokens, cut.tokens);
  EXPECT_EQ(report.text, cut.text);
  EXPECT_EQ(report.finish_reason, "stop");
  EXPECT_EQ(session->sequence().tokens(), stopped->sequence().tokens());
  ExpectNoTrace(*session, *model_);
}

TEST_F(SpeculationTest, AContextIsFilledToItsLastToken) {
  NgramDrafter ngram(3, 1);
  ScriptedParams params = Params(0.6f, /*max_tokens=*/0);
  const Session::Options options = {
      .context = static_cast<int64_t>(prompt_->size()) + 33};
  const auto plain = Prefilled(*model_, *prompt_, options);
  const Ids expected = Continued(*plain, params);
  EXPECT_EQ(expected.size(), 33u);
  params.drafter = &ngram;
  params.draft_length = DraftLength::Fixed(63);
  const auto session = Prefilled(*model_, *prompt_, options);
  const Report report = Generated(*session, params);
  EXPECT_EQ(report.tokens, expected);
  EXPECT_EQ(report.finish_reason, "length");
  EXPECT_EQ(session->sequence().room(), 0);
}

TEST_F(SpeculationTest, TwoPromptsInOneSession) {
  NgramDrafter ngram(3, 1);
  ScriptedParams params = Params(1.0f);
  params.drafter = &ngram;
  const auto session = Prefilled(*model_, *prompt_);
  const Ids first = Continued(*session, params);
  session->Truncate(30);
  const Ids other(prompt_->begin() + 17, prompt_->begin() + 90);
  ASSERT_TRUE(Prefill(*session, other.data(), other.size(), kNoProgress).ok());
  const Ids second = Continued(*session, params);

  const auto fresh = MakeSession(*model_);
  ASSERT_TRUE(Prefill(*fresh, prompt_->data(), 30, kNoProgress).ok());
  ASSERT_TRUE(Prefill(*fresh, other.data(), other.size(), kNoProgress).ok());
  EXPECT_EQ(Continued(*fresh, params), second);
  session->Truncate(0);
  ASSERT_TRUE(
      Prefill(*session, prompt_->data(), prompt_->size(), kNoProgress).ok());
  EXPECT_EQ(Continued(*session, params), first);
}

TEST_F(SpeculationTest, ADrafterThatFailsLosesNothing) {
  class Failing final : public Drafter {
   public:
    const char* name() const override { return "failing"; }
    absl::StatusOr<DraftBlock> Draft(const Ids&, int64_t,
                                     const DrawKey&) override {
      if (++count_ == 4) return InternalError("internal", "lost");
      return DraftBlock{{1, 2}, {{{1}, {1.0f}}, {{2}, {1.0f}}}};
    }

   private:
    int count_ = 0;
  } failing;
  ScriptedParams params = Params(1.0f);
  const Ids expected = Continued(*Prefilled(*model_, *prompt_), params);
  params.drafter = &failing;
  const auto session = Prefilled(*model_, *prompt_);
  const Report report = Generate(*session, params, nullptr);
  EXPECT_EQ(CodeOf(report.status), "internal");
  const Ids& some = report.tokens;
  EXPECT_GE(some.size(), 4u);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), expected.begin()));
  EXPECT_EQ(session->sequence().tokens().size(), prompt_->size() + some.size());
  ExpectNoTrace(*session, *model_);
}

TEST_F(SpeculationTest, BehindALinkTheTextIsTheSame) {
  NgramDrafter ngram(3, 1);
  for (DType type : {DType::kF16, DType::kF32}) {
    const Session::Options options = {
        .context = 400, .type_k = type, .type_v = type};
    const auto plain = Prefilled(*model_, *prompt_, options);
    const Ids expected = Continued(*plain, Params(0.8f));
    Model::Options with = model_->options;
    with.machine.simulation = {{.bytes = 100'000'000, .link = {1e12, 0}}};
    const auto tiered = OpenModel(with);
    const auto session = Prefilled(*tiered, *prompt_, options);
    ScriptedParams params = Params(0.8f);
    params.drafter = &ngram;
    const Report report = Generated(*session, params);
    EXPECT_EQ(report.tokens, expected);
    EXPECT_GT(report.rounds.levels[0].accepted, 0);
  }
}

}  // namespace
}  // namespace tiercel::speculation_test
