// Prompts that are read beside other calls of a batch: in slices, so that none
// waits for all of one, and each with the bits that it has alone.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/session/batch.h"
#include "tests/drafting.h"

namespace tiercel::batch_prompts_test {
namespace {

// A prompt that is read and continued in the call of a batch.
struct Job {
  Ids prompt;
  int64_t tokens;
  PolicyParams policy = {};
  uint64_t refused_after = UINT64_MAX;  // token-layers: its reading is stopped
};

// The outcome of a job, and what its reading said on the way.
struct Outcome {
  absl::Status read;
  PrefillReport prefill;
  Report report;
  uint64_t done = 0;   // token-layers
  uint64_t total = 0;  // ... of the prompt
};

class BatchPromptsTest : public RepeatedTextTest<5> {
 protected:
  static Job JobOf(size_t prompt, int64_t tokens,
                   const PolicyParams& policy = {}) {
    return {Ids(prompt_->begin(),
                prompt_->begin() + static_cast<std::ptrdiff_t>(prompt)),
            tokens, policy};
  }
  static std::unique_ptr<Session> NewSession(const Job& job,
                                             int64_t forks = 0) {
    SessionOptions options;
    options.context = 1024;
    options.forks = forks;
    options.fork_tokens = forks > 0 ? 100 : 0;
    auto session =
        MakeSession(*model_, job.policy.OptionsFor(*model_, options));
    session->runner().Rest();
    return session;
  }
  static Outcome Made(Session& session, const Job& job) {
    Outcome made;
    MakeInto(session, job, &made);
    return made;
  }
  static void MakeInto(Session& session, const Job& job, Outcome* to) {
    Outcome& made = *to;
    absl::StatusOr<PrefillReport> read =
        Prefill(session, job.prompt.data(), job.prompt.size(),
                [&](uint64_t done, uint64_t total) {
                  EXPECT_GE(done, made.done);
                  made.done = done;
                  made.total = total;
                  return done < job.refused_after;
                });
    made.read = read.status();
    if (!read.ok()) return;
    made.prefill = *read;
    made.report = GenerateDrafted(
        session, DraftedParams(job.tokens % 2 == 0 ? 0.0f : 0.9f, job.tokens),
        job.policy);
  }
  std::vector<Outcome> AtOnce(
      const std::vector<Job>& jobs,
      const std::vector<std::unique_ptr<Session>>& sessions) {
    batch_ = Batch::Create(*sessions.front()).value();
    std::vector<Outcome> made(jobs.size());
    std::vector<Batch::Call> calls;
    for (size_t i = 0; i < jobs.size(); ++i) {
      calls.push_back(
          {*sessions[i], [&, i] { made[i] = Made(*sessions[i], jobs[i]); }});
    }
    EXPECT_TRUE(batch_->Run(std::move(calls)).ok());
    for (const auto& session : sessions) session->runner().Rest();
    return made;
  }
  static std::vector<std::unique_ptr<Session>> Sessions(
      const std::vector<Job>& jobs) {
    std::vector<std::unique_ptr<Session>> sessions;
    for (const Job& job : jobs) sessions.push_back(NewSession(job));
    return sessions;
  }
  static void ExpectAsAlone(const Job& job, const Outcome& made) {
    const Outcome alone = Made(*NewSession(job), job);
    EXPECT_TRUE(made.read.ok()) << made.read;
    EXPECT_TRUE(made.report.status.ok()) << made.report.status;
    EXPECT_EQ(made.report.tokens, alone.report.tokens);
    // Drafts follow from the view that the prompt chose.
    EXPECT_EQ(made.report.sweeps, alone.report.sweeps);
    EXPECT_EQ(made.prefill.prompt_tokens, alone.prefill.prompt_tokens);
    EXPECT_EQ(made.prefill.cached_tokens, alone.prefill.cached_tokens);
    EXPECT_EQ(made.done, alone.done);
    EXPECT_EQ(made.total, alone.total);
  }

  std::unique_ptr<Batch> batch_;
};

TEST_F(BatchPromptsTest, SlicesGiveTheBitsOfTheWhole) {
  PolicyParams sadas;
  sadas.policy = PolicyNamed("sadas");
  PolicyParams speed;
  speed.policy = PolicyNamed("speed");
  speed.view = kSmallView;
  PolicyParams plain_speed = speed;
  plain_speed.form = PolicyForm::kPlain;
  const std::vector<Job> jobs = {JobOf(40, 60),
                                 JobOf(300, 11),
                                 JobOf(130, 24, SmallTriforce()),
                                 JobOf(200, 30, SmallSfi()),
                                 JobOf(64, 3),
                                 JobOf(65, 8, SmallTriforce()),
                                 JobOf(129, 1, sadas),
                                 JobOf(240, 9, speed),
                                 JobOf(1, 40),
                                 JobOf(192, 6),
                                 JobOf(150, 14, SmallSfi(PolicyForm::kPlain)),
                                 JobOf(280, 20, plain_speed),
                                 JobOf(70, 21, plain_speed)};
  const auto sessions = Sessions(jobs);
  const std::vector<Outcome> made = AtOnce(jobs, sessions);
  for (size_t i = 0; i < jobs.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectAsAlone(jobs[i], made[i]);
  }
}

// While a text is decoded, a pass has one slice of all prompts.
TEST_F(BatchPromptsTest, OneThatDecodesWaitsForOneSlice) {
  std::vector<Job> jobs = {JobOf(20, 90)};
  for (const size_t prompt : {300, 290, 280, 270}) {
    jobs.push_back(JobOf(prompt, 2));
  }
  const auto sessions = Sessions(jobs);
  const std::vector<Outcome> made = AtOnce(jobs, sessions);
  for (size_t i = 0; i < jobs.size(); ++i) ExpectAsAlone(jobs[i], made[i]);
  EXPECT_EQ(batch_->passes().most_rows_beside, kMaxStepRows);
  // Each token of the first text is one pass, whatever is read beside it.
  EXPECT_EQ(batch_->passes().passes, 90);
}

// A prompt that no other call waits for is read in slices, too, where others
// may come.
TEST_F(BatchPromptsTest, OneThatComesDuringAPromptWaitsForASlice) {
  std::vector<Job> jobs = {JobOf(300, 3), JobOf(10, 3)};
  jobs[0].prompt.insert(jobs[0].prompt.end(), prompt_->begin(), prompt_->end());
  const auto sessions = Sessions(jobs);
  batch_ = Batch::Create(*sessions.front()).value();
  std::vector<Outcome> made(jobs.size());
  uint64_t done = 0;  // token-layers of the first when the second begins
  int asked = 0;
  const auto call = [&](size_t i) {
    return Batch::Call{*sessions[i], [&, i] {
                         if (i == 1) done = made[0].done;
                         MakeInto(*sessions[i], jobs[i], &made[i]);
                       }};
  };
  const auto arrivals = [&] {
    std::vector<Batch::Call> calls;
    // It is asked before the first slice and before the second.
    if (asked++ == 1) calls.push_back(call(1));
    return calls;
  };
  std::vector<Batch::Call> first;
  first.push_back(call(0));
  EXPECT_TRUE(batch_->Run(std::move(first), arrivals).ok());
  const auto layers = static_cast<uint64_t>(model_->config.layers);
  EXPECT_EQ(done, 256 * layers);
  for (size_t i = 0; i < jobs.size(); ++i) ExpectAsAlone(jobs[i], made[i]);
}

// Forks that ask about one text read their questions in one sweep.
TEST_F(BatchPromptsTest, QuestionsAreReadTogether) {
  const Job text = JobOf(300, 0);
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(NewSession(text, /*forks=*/4));
  ASSERT_TRUE(
      Prefill(*sessions.front(), text.prompt.data(), 300, kNoProgress).ok());
  sessions.front()->runner().Rest();
  std::vector<Job> jobs;
  for (const size_t length : {30, 45, 52, 38, 60}) {
    jobs.push_back(JobOf(length, 8));
    if (jobs.size() > 1) {
      sessions.push_back(sessions.front()->Fork().value());
    }
  }
  const std::vector<Outcome> made = AtOnce(jobs, sessions);
  EXPECT_EQ(batch_->passes().passes, 1 + 7);
  EXPECT_EQ(batch_->passes().most_rows, 30 + 45 + 52 + 38 + 60);
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job whole = text;
    whole.prompt.insert(whole.prompt.end(), jobs[i].prompt.begin(),
                        jobs[i].prompt.end());
    whole.tokens = jobs[i].tokens;
    EXPECT_EQ(made[i].report.tokens,
              Made(*NewSession(whole), whole).report.tokens);
  }
}

// A prompt that is stopped between two slices leaves its session as it was, and
// the others go on.
TEST_F(BatchPromptsTest, OneThatIsStoppedLeavesItsSessionAsItWas) {
  std::vector<Job> jobs = {JobOf(20, 40), JobOf(300, 4), JobOf(100, 5)};
  const auto layers = static_cast<uint64_t>(model_->config.layers);
  jobs[1].refused_after = 170 * layers;
  const auto sessions = Sessions(jobs);
  const std::vector<Outcome> made = AtOnce(jobs, sessions);
  ExpectAsAlone(jobs[0], made[0]);
  ExpectAsAlone(jobs[2], made[2]);
  EXPECT_EQ(CodeOf(made[1].read), "cancelled");
  EXPECT_GT(made[1].done, 0u);
  EXPECT_LT(made[1].done, 300 * layers);
  EXPECT_TRUE(sessions[1]->sequence().tokens().empty());
  EXPECT_EQ(sessions[1]->sequence().kv_length(), 0);
  Job again = jobs[1];
  again.refused_after = UINT64_MAX;
  EXPECT_EQ(Made(*sessions[1], again).report.tokens,
            Made(*NewSession(again), again).report.tokens);
}

}  // namespace
}  // namespace tiercel::batch_prompts_test
