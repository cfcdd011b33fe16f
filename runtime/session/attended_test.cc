// The attention of a question: it is the same wherever the KV lies, and
// measuring it leaves no trace in the session.

#include <memory>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "tests/drafting.h"
#include "tests/tiers.h"

namespace tiercel::attended_test {
namespace {

class AttendedTest : public RepeatedTextTest<14> {
 protected:
  static std::vector<double> Attended(Session& session,
                                      const Reading& reading) {
    auto shares = session.Attended(reading, kNoProgress);
    EXPECT_TRUE(shares.ok()) << shares.status();
    return shares->shares;
  }
};

TEST_F(AttendedTest, SharesAreOneTogether) {
  const auto session = Prefilled(*model_, *prompt_);
  const size_t length = prompt_->size();
  for (const auto& [begin, end, count] : std::vector<std::array<size_t, 3>>{
           {0, 64, 2}, {1, 96, 2}, {33, 95, 0}, {32, 320, 9}, {7, 7, 0}}) {
    const std::vector<double> shares =
        Attended(*session, {begin, end, end + 5, length - 70});
    ASSERT_EQ(shares.size(), count) << begin;
    if (count == 0) continue;
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-9);
    for (const double share : shares) EXPECT_GE(share, 0);
  }
}

TEST_F(AttendedTest, LeavesTheSessionAsItIs) {
  const auto session = Prefilled(*model_, *prompt_);
  const Ids tokens = session->sequence().tokens();
  const std::vector<float> logits(session->NextLogits().begin(),
                                  session->NextLogits().end());
  const Reading reading = {0, 320, 330, prompt_->size() - 100};
  const std::vector<double> first = Attended(*session, reading);
  EXPECT_EQ(session->sequence().tokens(), tokens);
  EXPECT_EQ(std::vector<float>(session->NextLogits().begin(),
                               session->NextLogits().end()),
            logits);
  EXPECT_EQ(Attended(*session, reading), first);
  const auto untouched = Prefilled(*model_, *prompt_);
  EXPECT_EQ(DraftedText(*session, DraftedParams(0.8f, 30), {}),
            DraftedText(*untouched, DraftedParams(0.8f, 30), {}));
}

// The logits after the last token outlast a call of another session, which
// computes in the same workspace.
TEST_F(AttendedTest, LeavesTheLogitsOfASessionThatRested) {
  const auto session = Prefilled(*model_, *prompt_);
  const std::vector<float> logits = NextLogits(*session);
  session->runner().Rest();
  const auto other = Prefilled(*model_, {3, 1, 4, 1, 5});
  other->runner().Rest();
  Attended(*session, {0, 320, 330, prompt_->size() - 100});
  session->runner().Rest();
  EXPECT_EQ(NextLogits(*session), logits);
}

TEST_F(AttendedTest, OtherQuestionsAreComparedAndLeaveNoTrace) {
  const auto session = Prefilled(*model_, *prompt_);
  const Ids tokens = session->sequence().tokens();
  const std::vector<float> logits = NextLogits(*session);
  const size_t length = prompt_->size();
  const Reading alone = {0, 320, 330, length - 100};
  const std::vector<double> first = Attended(*session, alone);
  Reading beside = alone;
  // A question asked as the other one has no excess over it.
  beside.others = {{tokens.begin() + 330, tokens.end() - 100}};
  const auto same = session->Attended(beside, kNoProgress);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->excess, 0);
  beside.others = {RandomIds(90, model_->config.vocab), {5, 6, 7}};
  const std::vector<double> shares = Attended(*session, beside);
  EXPECT_NE(shares, first);
  EXPECT_EQ(session->sequence().tokens(), tokens);
  EXPECT_EQ(NextLogits(*session), logits);
  EXPECT_EQ(Attended(*session, alone), first);
  EXPECT_EQ(Attended(*session, beside), shares);
  EXPECT_EQ(
      DraftedText(*session, DraftedParams(0.8f, 30), {}),
      DraftedText(*Prefilled(*model_, *prompt_), DraftedParams(0.8f, 30), {}));
}

TEST_F(AttendedTest, AnotherQuestionMustFit) {
  const auto session = Prefilled(*model_, *prompt_);
  const Ids tokens = session->sequence().tokens();
  const std::vector<float> logits = NextLogits(*session);
  Reading reading = {0, 320, 330, prompt_->size() - 100};
  reading.others = {Ids(100'000, 1)};
  EXPECT_EQ(CodeOf(session->Attended(reading, kNoProgress).status()),
            "context_length_exceeded");
  reading.others = {{1, 2}, {-1}};
  EXPECT_EQ(CodeOf(session->Attended(reading, kNoProgress).status()),
            "invalid_token");
  EXPECT_EQ(session->sequence().tokens(), tokens);
  ASSERT_TRUE(session->CatchUp(Phase::kVerify).ok());
  EXPECT_EQ(NextLogits(*session), logits);
}

// It may be measured between two answers, of which the second drafts over a
// view.
TEST_F(AttendedTest, LeavesAViewThatDraftsAreGoodOver) {
  const PolicyParams triforce = {.policy = PolicyNamed("triforce"),
                                 .verify = VerifyMode::kCoupled,
                                 .view = kSmallView};
  const Session::Options options =
      triforce.OptionsFor(*model_, {.context = 900});
  const auto talk = [&](bool asks) {
    const auto session = MakeSession(*model_, options);
    EXPECT_TRUE(
        Prefill(*session, prompt_->data(), prompt_->size(), kNoProgress).ok());
    Ids text = DraftedText(*session, DraftedParams(0.8f, 30), triforce);
    if (asks) Attended(*session, {0, 320, 321, prompt_->size()});
    const Ids more = DraftedText(*session, DraftedParams(0.8f, 30), triforce);
    text.insert(text.end(), more.begin(), more.end());
    return text;
  };
  EXPECT_EQ(talk(true), talk(false));
}

TEST_F(AttendedTest, IsTheSameBehindALinkAndUnderAPolicy) {
  const auto deep = OpenReference(
      {.path = Deepened("llama_chat"), .machine = {.threads = 2}});
  const PolicyParams triforce = {.policy = PolicyNamed("triforce"),
                                 .verify = VerifyMode::kCoupled,
                                 .view = kSmallView};
  std::vector<double> expected;
  for (const PolicyParams& policy : {PolicyParams(), triforce}) {
    const Session::Options options =
        policy.OptionsFor(*model_, {.context = 900});
    const auto shares = [&](Session& session) {
      EXPECT_TRUE(
          Prefill(session, prompt_->data(), prompt_->size(), kNoProgress).ok());
      DraftedText(session, DraftedParams(0.8f, 70), policy);
      return Attended(session, {5, 400, 410, prompt_->size()});
    };
    const std::vector<double> here = shares(*MakeSession(*deep, options));
    if (expected.empty()) expected = here;
    EXPECT_EQ(here, expected);
    for (const Budget budget : {Budget::kLeast, Budget::kAll}) {
      const Tiered tiered = MakeTiered(*deep, options, budget);
      EXPECT_EQ(shares(*tiered.session), expected);
    }
  }
}

TEST_F(AttendedTest, WhatCannotBeAskedIsRefused) {
  const auto session = Prefilled(*model_, *prompt_);
  const size_t length = prompt_->size();
  const auto code = [&](const Reading& reading) {
    return CodeOf(RunsOf(session->sequence(), reading).status());
  };
  for (const Reading& reading : std::vector<Reading>{
           {2, 1, 5, 10}, {0, 5, 5, 10}, {0, 1, 11, 10}, {0, 1, 2, length}}) {
    EXPECT_EQ(code(reading), "invalid_argument") << reading.asked;
  }
  EXPECT_TRUE(RunsOf(session->sequence(), {0, 1, 2, length - 1}).ok());
}

TEST_F(AttendedTest, CanBeStopped) {
  const auto session = Prefilled(*model_, *prompt_);
  const size_t length = prompt_->size();
  const Reading reading = {0, 128, length - 200, length - 130};
  std::vector<uint64_t> calls;
  const auto stop = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, length - 128);
    calls.push_back(done);
    return done < length - 200 - 128 + 64;  // in the question
  };
  EXPECT_EQ(ClassOf(session->Attended(reading, stop).status()),
            ErrorClass::kCancelled);
  EXPECT_EQ(calls.back(), length - 200 - 128 + 64);
  session->cancellation().Cancel();
  EXPECT_EQ(ClassOf(session->Attended(reading, kNoProgress).status()),
            ErrorClass::kCancelled);
  session->cancellation().Clear();
  // Rows that are missing now are computed.
  session->Truncate(60);
  ASSERT_TRUE(session->Append(prompt_->data() + 60, prompt_->size() - 60).ok());
  EXPECT_EQ(Attended(*session, reading),
            Attended(*Prefilled(*model_, *prompt_), reading));
}

}  // namespace
}  // namespace tiercel::attended_test
