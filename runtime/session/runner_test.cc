// A runner alone, with the KV of sequences: the rows that it takes, and the row
// whose logits it keeps.

#include "runtime/session/runner.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/status/error.h"
#include "runtime/session/sequence_kv.h"
#include "tests/drafting.h"

namespace tiercel::runner_test {
namespace {

class RunnerTest : public RepeatedTextTest<2> {
 protected:
  RunnerTest() {
    const std::lock_guard<std::mutex> admission(MemoryAccount::Admission());
    runner_ = Runner::Create(*model_, {}).value();
    first_ = NewKv();
    second_ = NewKv();
    EXPECT_TRUE(runner_->PromiseWorkspace().ok());
  }

  std::unique_ptr<SequenceKv> NewKv() const {
    return SequenceKv::Create(*model_, runner_->plans(),
                              *runner_->together().gather,
                              /*texts=*/nullptr)
        .value();
  }
  // Passes all rows of `prompt_` behind what `kv` holds, and adds them.
  absl::Status Pass(SequenceKv& kv) {
    const auto begun = [](PassPoint*) { return absl::OkStatus(); };
    Runner::Stop stop;
    const absl::Status status = runner_->Pass(
        {kv, prompt_->data(), Rows(), all_},
        {.phase = Phase::kPrefill, .begun = begun}, kNoProgress, kGoOn, &stop);
    if (!status.ok()) return status;
    return kv.Commit(Rows(), kGoOn);
  }
  static int64_t Rows() { return std::ssize(*prompt_); }
  std::vector<float> Kept() const {
    return {runner_->KeptRow().begin(), runner_->KeptRow().end()};
  }

  static constexpr auto kGoOn = [] { return false; };
  const View all_ = View::Full();
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<SequenceKv> first_;
  std::unique_ptr<SequenceKv> second_;
};

TEST_F(RunnerTest, PassesRowsOfOneSequenceAfterTheOther) {
  ASSERT_TRUE(Pass(*first_).ok());
  ASSERT_TRUE(runner_->KeepRow(Rows() - 1).ok());
  const std::vector<float> logits = Kept();
  EXPECT_EQ(logits, NextLogits(*Prefilled(*model_, *prompt_)));
  ASSERT_TRUE(Pass(*second_).ok());
  ASSERT_TRUE(runner_->KeepRow(Rows() - 1).ok());
  EXPECT_EQ(Kept(), logits);
  EXPECT_EQ(first_->store().length(), Rows());
  EXPECT_EQ(second_->store().length(), Rows());
}

// Sequences of different lengths and numbers of rows in one pass.
TEST_F(RunnerTest, PassesSeveralSequencesTogetherAsAlone) {
  const std::vector<int32_t> ids = {7, 8, 9};
  const auto pass = [&](std::vector<SequenceKv*> kvs) {
    std::vector<JointStep> steps;
    for (size_t i = 0; i < kvs.size(); ++i) {
      const auto rows = static_cast<int64_t>(i % ids.size()) + 1;
      steps.push_back({.rows = {*kvs[i], ids.data(), rows, all_},
                       .kind = {.phase = Phase::kVerify},
                       .certain = true});
    }
    EXPECT_TRUE(runner_->PassTogether(absl::MakeSpan(steps), kGoOn).ok());
    std::vector<std::vector<float>> logits;
    for (const JointStep& step : steps) {
      EXPECT_TRUE(step.status.ok()) << step.status;
      const float* const row = runner_->RowLogits(step.last_row, 1).value();
      logits.emplace_back(row, row + model_->config.vocab);
      step.rows.kv.store().Abandon();
    }
    return logits;
  };
  const std::unique_ptr<SequenceKv> empty = NewKv();
  ASSERT_TRUE(Pass(*first_).ok());
  ASSERT_TRUE(Pass(*second_).ok());
  second_->Truncate(Rows() / 2);
  const auto together = pass({first_.get(), second_.get(), empty.get()});
  ASSERT_EQ(together.size(), 3u);
  EXPECT_EQ(together[0], pass({first_.get()})[0]);
  EXPECT_EQ(together[1], pass({empty.get(), second_.get()})[1]);
  EXPECT_EQ(together[2], pass({second_.get(), first_.get(), empty.get()})[2]);
  EXPECT_NE(together[0], together[1]);
  EXPECT_NE(together[1], together[2]);
}

// A step that is refused takes those beside it along, and leaves the others.
TEST_F(RunnerTest, AStepBesideOneThatIsRefusedIsNotPassed) {
  ASSERT_TRUE(Pass(*first_).ok());
  ASSERT_TRUE(Pass(*second_).ok());
  const auto beside = second_->Fork(SequenceKv::Copies::kPages).value();
  const std::vector<int32_t> ids = {7, 8, 9};
  const View refused = View::Window(/*sinks=*/4, /*recent=*/0);
  const auto step_of = [&](SequenceKv& kv, const View& view, int64_t to) {
    return JointStep{.rows = {kv, ids.data(), 3, view},
                     .kind = {.phase = Phase::kVerify},
                     .certain = true,
                     .beside = to};
  };
  std::vector<JointStep> steps = {step_of(*second_, refused, 0),
                                  step_of(*first_, all_, 0),
                                  step_of(*beside, all_, 2)};
  EXPECT_TRUE(runner_->PassTogether(absl::MakeSpan(steps), kGoOn).ok());
  EXPECT_EQ(CodeOf(steps[0].status), "invalid_view");
  EXPECT_EQ(steps[0].last_row, -1);
  EXPECT_TRUE(steps[1].status.ok());
  EXPECT_EQ(steps[1].last_row, 2);
  EXPECT_FALSE(steps[2].status.ok());
  EXPECT_EQ(steps[2].last_row, -1);
  first_->store().Abandon();
}

TEST_F(RunnerTest, KeepsALogitsRowWhileItRests) {
  ASSERT_TRUE(Pass(*first_).ok());
  EXPECT_TRUE(Kept().empty());
  ASSERT_TRUE(runner_->KeepRow(Rows() - 1).ok());
  const std::vector<float> logits = Kept();
  ASSERT_FALSE(logits.empty());
  runner_->Rest();
  EXPECT_EQ(Kept(), logits);
  EXPECT_EQ(CodeOf(runner_->RowLogits(0, 1).status()), "internal");
  // Another runner computes in the same workspace meanwhile.
  ASSERT_NE(NextLogits(*Prefilled(*model_, {3, 1, 4})), logits);
  ASSERT_TRUE(runner_->ReadyKeptRow().ok());
  EXPECT_EQ(Kept(), logits);
  runner_->DropKeptRow();
  EXPECT_TRUE(Kept().empty());
}

}  // namespace
}  // namespace tiercel::runner_test
