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

using ::testing::HasSubstr;

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
    return SequenceKv::Create(*model_, runner_->plans(), runner_->gather(),
                              /*texts=*/nullptr)
        .value();
  }
  // Passes all rows of `prompt_` behind what `kv` holds, and adds them.
  absl::Status Pass(SequenceKv& kv) {
    const SequenceRows rows = RowsOf(kv);
    const absl::Status status = Pass({&rows, 1});
    if (!status.ok()) return status;
    return kv.Commit(rows.count, kGoOn);
  }
  absl::Status Pass(absl::Span<const SequenceRows> rows) {
    const auto begun = [](PassPoint*) { return absl::OkStatus(); };
    Runner::Stop stop;
    return runner_->Pass(rows, {.phase = Phase::kPrefill, .begun = begun},
                         kNoProgress, kGoOn, &stop);
  }
  SequenceRows RowsOf(SequenceKv& kv) const {
    return {kv, prompt_->data(), Rows(), all_};
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

TEST_F(RunnerTest, RefusesSeveralSequencesAtOnce) {
  const std::vector<SequenceRows> both = {RowsOf(*first_), RowsOf(*second_)};
  const absl::Status status = Pass(both);
  EXPECT_EQ(CodeOf(status), "invalid_argument");
  EXPECT_THAT(status.message(), HasSubstr("got 2"));
  EXPECT_EQ(CodeOf(Pass({})), "invalid_argument");
  EXPECT_EQ(first_->store().length(), 0);
  ASSERT_TRUE(Pass(*first_).ok());
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
  ASSERT_TRUE(runner_->TakeWorkspace().ok());
  EXPECT_EQ(Kept(), logits);
  runner_->DropKeptRow();
  EXPECT_TRUE(Kept().empty());
}

}  // namespace
}  // namespace tiercel::runner_test
