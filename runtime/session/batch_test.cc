// Generations of several sessions at once: each is what it is alone, whatever
// the others do.

#include "runtime/session/batch.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "tests/drafting.h"

namespace tiercel::batch_test {
namespace {

// A generation, with its own prompt, sampling, length and policy.
struct Job {
  Ids prompt;
  GenerateParams params;
  PolicyParams policy = {};
  int64_t stop_after = -1;  // its callback refuses this token; -1: none
};

class BatchTest : public RepeatedTextTest<4> {
 protected:
  // Generates alone.
  static Report Alone(const Job& job) {
    const auto session = NewSession(job);
    return Generate(*session, job);
  }
  // Generates all at once.
  std::vector<Report> AtOnce(const std::vector<Job>& jobs) {
    std::vector<std::unique_ptr<Session>> sessions;
    for (const Job& job : jobs) sessions.push_back(NewSession(job));
    return AtOnce(jobs, sessions);
  }
  std::vector<Report> AtOnce(
      const std::vector<Job>& jobs,
      const std::vector<std::unique_ptr<Session>>& sessions) {
    batch_ = Batch::Create(*sessions.front()).value();
    std::vector<Report> reports(jobs.size());
    std::vector<Batch::Call> calls;
    for (size_t i = 0; i < jobs.size(); ++i) {
      calls.push_back({*sessions[i], [&, i] {
                         reports[i] = Generate(*sessions[i], jobs[i]);
                       }});
    }
    EXPECT_TRUE(batch_->Run(std::move(calls)).ok());
    return reports;
  }
  void ExpectAsAlone(const std::vector<Job>& jobs) {
    const std::vector<Report> reports = AtOnce(jobs);
    for (size_t i = 0; i < jobs.size(); ++i) {
      SCOPED_TRACE(i);
      const Report alone = Alone(jobs[i]);
      EXPECT_EQ(reports[i].tokens, alone.tokens);
      EXPECT_EQ(CodeOf(reports[i].status), CodeOf(alone.status));
      EXPECT_EQ(reports[i].finish_reason, alone.finish_reason);
      EXPECT_EQ(reports[i].sweeps, alone.sweeps);
    }
  }

  // A device has pages for one session, which its forks share, so that there
  // some may find none; what they gave out is right.
  static void ExpectTexts(const std::vector<Report>& reports,
                          const std::vector<Job>& jobs) {
    const bool limited = model_->machine->device().apart();
    for (size_t i = 0; i < jobs.size(); ++i) {
      Ids alone = Alone(jobs[i]).tokens;
      if (limited && ClassOf(reports[i].status) == ErrorClass::kMemory) {
        EXPECT_GT(i, 0u);
        alone.resize(reports[i].tokens.size());
      }
      EXPECT_EQ(reports[i].tokens, alone) << i << ": " << reports[i].status;
    }
  }

  static std::unique_ptr<Session> NewSession(const Job& job) {
    return Prefilled(*model_, job.prompt,
                     job.policy.OptionsFor(*model_, {.context = 512}));
  }
  static Report Generate(Session& session, const Job& job) {
    int64_t given = 0;
    return GenerateDrafted(
        session, job.params, job.policy,
        [&](const OutputToken&) { return given++ != job.stop_after; });
  }
  static Job JobOf(size_t prompt, float temperature, int64_t tokens) {
    Job job = {Ids(prompt_->begin(),
                   prompt_->begin() + static_cast<std::ptrdiff_t>(prompt)),
               DraftedParams(temperature, tokens)};
    job.params.seed = prompt;
    return job;
  }

  std::unique_ptr<Batch> batch_;
};

TEST_F(BatchTest, EachTextIsWhatItIsAlone) {
  std::vector<Job> jobs = {JobOf(5, 0, 20), JobOf(130, 1, 9),
                           JobOf(200, 0.7f, 31), JobOf(64, 1.5f, 1)};
  jobs[2].params.distribution.repeat_penalty = 1.3f;
  jobs[1].params.distribution.dry = StrictDry();
  ExpectAsAlone(jobs);
  // A pass for each token of the longest text but the first, which the prompt
  // gave.
  EXPECT_EQ(batch_->passes().passes, 30);
  EXPECT_EQ(batch_->passes().steps, 19 + 8 + 30 + 0);
  EXPECT_EQ(batch_->passes().rows, batch_->passes().steps);
}

TEST_F(BatchTest, PoliciesMayDiffer) {
  std::vector<Job> jobs = {JobOf(200, 0, 24), JobOf(190, 0.8f, 24),
                           JobOf(150, 0, 12)};
  jobs[0].policy.proposer = Proposer::kNgram;
  jobs[1].policy = SmallTriforce();
  ExpectAsAlone(jobs);
  EXPECT_GT(batch_->passes().rows, batch_->passes().steps);
  EXPECT_LT(batch_->passes().passes, batch_->passes().steps);
}

// Steps that read a view and write the pages go beside sweeps.
TEST_F(BatchTest, PlainFormsAreInThePassesOfAll) {
  std::vector<Job> jobs = {JobOf(200, 0, 40), JobOf(190, 0.8f, 40),
                           JobOf(150, 0, 40), JobOf(170, 0.9f, 40)};
  for (size_t i = 0; i < 3; ++i) {
    jobs[i].policy = SmallSfi(PolicyForm::kPlain);
  }
  ExpectAsAlone(jobs);
  EXPECT_EQ(batch_->passes().sweeps, batch_->passes().passes);
  EXPECT_GT(batch_->passes().steps, 150);
  EXPECT_LT(batch_->passes().passes, 60);
}

// A prompt that was stopped goes on in a step of its own, before which others
// begin.
TEST_F(BatchTest, StepsOfTheirOwnGoInTurns) {
  const std::vector<Job> jobs = {JobOf(200, 0, 3), JobOf(190, 0.8f, 3)};
  std::vector<std::unique_ptr<Session>> sessions;
  for (const Job& job : jobs) {
    sessions.push_back(
        MakeSession(*model_, job.policy.OptionsFor(*model_, {.context = 512})));
    const auto stop = [](uint64_t done, uint64_t) { return done < 200; };
    EXPECT_EQ(CodeOf(Prefill(*sessions.back(), job.prompt.data(),
                             job.prompt.size(), stop)
                         .status()),
              "cancelled");
    EXPECT_TRUE(sessions.back()->kv().interrupted().exists());
    sessions.back()->runner().Rest();
  }
  batch_ = Batch::Create(*sessions.front()).value();
  std::vector<int> order;  // 2 i: call i begins; 2 i + 1: it has its prompt
  std::vector<Batch::Call> calls;
  for (size_t i = 0; i < jobs.size(); ++i) {
    calls.push_back({*sessions[i], [&, i] {
                       order.push_back(static_cast<int>(2 * i));
                       const Job& job = jobs[i];
                       EXPECT_TRUE(Prefill(*sessions[i], job.prompt.data(),
                                           job.prompt.size(), kNoProgress)
                                       .ok());
                       order.push_back(static_cast<int>(2 * i + 1));
                       EXPECT_EQ(Generate(*sessions[i], job).tokens,
                                 Alone(job).tokens);
                     }});
  }
  EXPECT_TRUE(batch_->Run(std::move(calls)).ok());
  EXPECT_EQ(order, (std::vector<int>{0, 2, 1, 3}));
}

// Blocks of more rows than a pass takes go in turns.
TEST_F(BatchTest, TakesMoreRowsThanAPass) {
  std::vector<Job> jobs;
  for (size_t i = 0; i < 60; ++i) {
    jobs.push_back(JobOf(180 + i, 0, 30));
    jobs.back().policy.proposer = Proposer::kNgram;
    jobs.back().policy.gamma1 = DraftLength::Fixed(40);
  }
  ExpectAsAlone(jobs);
  EXPECT_GT(batch_->passes().most_rows, kMaxStepRows);
  EXPECT_LE(batch_->passes().most_rows, 4 * kMaxStepRows);
  EXPECT_GT(batch_->passes().passes, 2);
}

TEST_F(BatchTest, ForksOfOneTextShareItsPages) {
  const Job job = JobOf(170, 0.9f, 16);
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(NewSession(job));
  std::vector<Job> jobs = {job};
  for (uint64_t seed : {11, 12, 13, 14}) {
    sessions.push_back(sessions.front()->Fork().value());
    jobs.push_back(job);
    jobs.back().params.seed = seed;
  }
  const std::vector<Report> reports = AtOnce(jobs, sessions);
  ExpectTexts(reports, jobs);
  EXPECT_NE(reports[1].tokens, reports[2].tokens);
  EXPECT_EQ(batch_->passes().passes, 15);
}

// More rows than a page has positions read the pages of one text.
TEST_F(BatchTest, ManyForksReadTheirPagesTogether) {
  constexpr int64_t kForks = 11;
  Job job = JobOf(200, 0, 40);
  job.policy = SmallTriforce();
  SessionOptions options;
  options.context = 512;
  options.forks = kForks;
  options.fork_tokens = job.params.max_tokens;
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(
      Prefilled(*model_, job.prompt, job.policy.OptionsFor(*model_, options)));
  sessions.front()->runner().Rest();
  std::vector<Job> jobs = {job};
  while (std::ssize(jobs) <= kForks) {
    sessions.push_back(sessions.front()->Fork().value());
    jobs.push_back(job);
  }
  const std::vector<Report> reports = AtOnce(jobs, sessions);
  EXPECT_GT(batch_->passes().most_rows, kPageTokens);
  const Ids alone = Alone(job).tokens;
  for (const Report& report : reports) {
    EXPECT_TRUE(report.status.ok()) << report.status;
    EXPECT_EQ(report.tokens, alone);
  }
}

// Forks of two texts, whose pages are read together for each, with different
// numbers of rows; and a fork that left its text early.
TEST_F(BatchTest, ForksOfTwoTextsReadTheirOwnPages) {
  std::vector<Job> jobs;
  std::vector<std::unique_ptr<Session>> sessions;
  for (const size_t prompt : {240, 200}) {
    Job job = JobOf(prompt, 0.9f, 12);
    std::rotate(job.prompt.begin(),
                job.prompt.begin() + static_cast<std::ptrdiff_t>(prompt / 3),
                job.prompt.end());
    job.policy.proposer = prompt == 240 ? Proposer::kNone : Proposer::kNgram;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      job.params.seed = seed;
      if (seed == 0) {
        sessions.push_back(NewSession(job));
      } else {
        sessions.push_back(sessions.back()->Fork().value());
      }
      jobs.push_back(job);
    }
  }
  Job early = jobs.front();
  early.prompt.resize(130);
  early.prompt.insert(early.prompt.end(), 120, 9);
  sessions.push_back(sessions.front()->Fork().value());
  sessions.back()->Truncate(130);
  ASSERT_TRUE(
      Prefill(*sessions.back(), early.prompt.data() + 130, 120, kNoProgress)
          .ok());
  jobs.push_back(early);
  const std::vector<Report> reports = AtOnce(jobs, sessions);
  ExpectTexts(reports, jobs);
}

TEST_F(BatchTest, OneThatIsCancelledOrFailsLeavesTheOthers) {
  std::vector<Job> jobs = {JobOf(100, 0, 12), JobOf(90, 0, 12),
                           JobOf(80, 0.5f, 12)};
  jobs[0].stop_after = 4;
  jobs[1].params.stops = {""};  // refused before it begins
  ExpectAsAlone(jobs);
}

// The session of a call that was cancelled is as before, and goes on.
TEST_F(BatchTest, ASessionGoesOnAfterIt) {
  std::vector<Job> jobs = {JobOf(100, 0, 30), JobOf(90, 0, 7)};
  std::vector<std::unique_ptr<Session>> sessions;
  for (const Job& job : jobs) sessions.push_back(NewSession(job));
  jobs[0].stop_after = 5;
  const std::vector<Report> reports = AtOnce(jobs, sessions);
  EXPECT_EQ(reports[0].finish_reason, "cancelled");
  sessions[0]->cancellation().Clear();
  Job rest = jobs[0];
  rest.stop_after = -1;
  rest.params.max_tokens = 24;
  Ids text = reports[0].tokens;
  const Report more = Generate(*sessions[0], rest);
  text.insert(text.end(), more.tokens.begin(), more.tokens.end());
  jobs[0].stop_after = -1;
  Ids whole = Alone(jobs[0]).tokens;
  whole.resize(text.size());
  EXPECT_EQ(text, whole);
}

TEST_F(BatchTest, AnExceptionOfOneEndsAll) {
  const std::vector<Job> jobs = {JobOf(100, 0, 30), JobOf(90, 0, 30)};
  std::vector<std::unique_ptr<Session>> sessions;
  for (const Job& job : jobs) sessions.push_back(NewSession(job));
  batch_ = Batch::Create(*sessions.front()).value();
  Report first;
  const auto throws = [&](const OutputToken&) {
    const auto what = [] { throw std::runtime_error("as asked"); };
    return batch_->OnCaller(what);
  };
  std::vector<Batch::Call> calls;
  calls.push_back(
      {*sessions[0], [&] { first = Generate(*sessions[0], jobs[0]); }});
  calls.push_back({*sessions[1], [&] {
                     GenerateDrafted(*sessions[1], jobs[1].params, {}, throws);
                   }});
  EXPECT_THROW((void)batch_->Run(std::move(calls)), std::runtime_error);
  EXPECT_EQ(first.finish_reason, "cancelled");
  EXPECT_EQ(sessions[1]->sequence().tokens().size(), 91u);
}

}  // namespace
}  // namespace tiercel::batch_test
