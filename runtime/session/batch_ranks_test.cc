// Texts that are passed together over several ranks: each is what it is alone
// on one rank, and a failure on one rank is an error of the text that it hits.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"
#include "runtime/session/batch_texts_for_test.h"

namespace tiercel::batch_ranks_test {
namespace {

constexpr int kRanks = 2;

class BatchRanksTest : public BatchTextsTest {
 protected:
  // One rank has two of the three KV heads, so that its device has fewer pages.
  static void SetUpTestSuite() { SetUpWith("llama_gqa"); }

  // The model over all ranks, in one memory or on devices that hold the least
  // that sessions of `options` need.
  static std::unique_ptr<Model> OpenRanks(const SessionOptions& options,
                                          bool tiered) {
    if (tiered) return OpenTiered(options, kRanks);
    Model::Options of = like_->options;
    of.ranks = kRanks;
    return OpenModel(of);
  }
};

TEST_F(BatchRanksTest, EachTextIsWhatItIsAlone) {
  for (const PolicyParams& policy : Policies()) {
    SCOPED_TRACE(policy.policy->name());
    const std::vector<Job> jobs = Jobs(policy);
    const std::vector<Report> expected = Expected(jobs);
    const SessionOptions options = OptionsOf(policy, kForks);
    for (const bool tiered : {false, true}) {
      const auto model = OpenRanks(options, tiered);
      const auto sessions = Forks(MakeSession(*model, options), jobs);
      Batch::Passes passes;
      const std::vector<Report> reports = AtOnce(jobs, sessions, &passes);
      for (size_t i = 0; i < jobs.size(); ++i) {
        ASSERT_TRUE(reports[i].status.ok()) << reports[i].status;
        ASSERT_EQ(reports[i].tokens, expected[i].tokens) << i;
        EXPECT_EQ(reports[i].sweeps, expected[i].sweeps) << i;
      }
      EXPECT_LT(passes.passes, passes.steps);
    }
  }
}

// One rank's device has no pages for all steps, the other's has: a step for
// which either has none waits on both.
TEST_F(BatchRanksTest, AStepWaitsWhereEitherHasNoRoom) {
  PolicyParams ngram;
  ngram.proposer = Proposer::kNgram;
  const std::vector<Job> jobs = Jobs(ngram);
  const std::vector<Report> expected = Expected(jobs);
  const SessionOptions options = OptionsOf(ngram, /*forks=*/0);
  const auto model = OpenRanks(options, /*tiered=*/true);
  const auto sessions = Asked(MakeSession(*model, options), jobs);
  Batch::Passes passes;
  const std::vector<Report> reports = AtOnce(jobs, sessions, &passes);
  int64_t sweeps = 0;
  for (size_t i = 0; i < jobs.size(); ++i) {
    ASSERT_TRUE(reports[i].status.ok()) << reports[i].status;
    ASSERT_EQ(reports[i].tokens, expected[i].tokens) << i;
    sweeps = std::max(sweeps, reports[i].sweeps);
  }
  EXPECT_GT(passes.passes, sweeps);
}

// A copy of one of the ranks fails: each text has an error or is right as far
// as it goes, and its session then goes on to the same text.
TEST_F(BatchRanksTest, AfterALostCopyEachGoesOn) {
  const PolicyParams triforce = SmallTriforce();
  std::vector<Job> jobs = Jobs(triforce);
  for (Job& job : jobs) job.params.distribution.temperature = 0;
  const std::vector<Report> expected = Expected(jobs);
  const SessionOptions options = OptionsOf(triforce, kForks);
  const auto model = OpenRanks(options, /*tiered=*/true);
  int failed = 0;
  for (int64_t fail_at = 1; fail_at < 4000;
       fail_at = fail_at * (TriesAllFaults() ? 4 : 16) + 1) {
    const auto sessions = Asked(MakeSession(*model, options), jobs);
    FailingCall copy(Callee::kLink, "copy");
    copy.Arm(fail_at);
    const std::vector<Report> reports = AtOnce(jobs, sessions);
    const bool happened = copy.happened();
    copy.Arm(std::numeric_limits<int64_t>::max());
    for (size_t i = 0; i < jobs.size(); ++i) {
      Ids text = reports[i].tokens;
      if (!reports[i].status.ok()) {
        ++failed;
        EXPECT_EQ(CodeOf(reports[i].status), "copy_failed");
        Job rest = jobs[i];
        rest.params.max_tokens -= std::ssize(text);
        const Report more =
            GenerateDrafted(*sessions[i], rest.params, triforce);
        sessions[i]->runner().Rest();
        EXPECT_TRUE(more.status.ok()) << more.status;
        text.insert(text.end(), more.tokens.begin(), more.tokens.end());
      }
      ASSERT_EQ(text, expected[i].tokens) << fail_at << " " << i;
    }
    if (!happened) break;
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace tiercel::batch_ranks_test
