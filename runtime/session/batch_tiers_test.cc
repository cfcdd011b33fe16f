// Texts that sweep together behind a link: each is what it is alone, and what
// they share crosses once for all.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"
#include "runtime/session/batch_texts_for_test.h"

namespace tiercel::batch_tiers_test {
namespace {

class BatchTiersTest : public BatchTextsTest {
 protected:
  static int64_t MovedUp(const Session& session) {
    uint64_t bytes = 0;
    for (const LinkUse& use : session.kv().first().tier->engine->ledger()) {
      bytes += use.h2d_bytes;
    }
    return static_cast<int64_t>(bytes);
  }
};

TEST_F(BatchTiersTest, EachTextIsWhatItIsAlone) {
  for (const PolicyParams& policy : Policies()) {
    const std::vector<Job> jobs = Jobs(policy);
    const std::vector<Report> expected = Expected(jobs);
    for (const Budget budget :
         {Budget::kLeast, Budget::kMiddle, Budget::kAll}) {
      for (const int64_t forks : {int64_t{0}, kForks}) {
        const bool views = policy.RetrievalView().has_value();
        if (views && forks == 0) continue;  // they have no memory
        Tiered made = MakeTiered(*like_, OptionsOf(policy, forks), budget);
        const auto sessions = Asked(std::move(made.session), jobs);
        Batch::Passes passes;
        const std::vector<Report> reports = AtOnce(jobs, sessions, &passes);
        for (size_t i = 0; i < jobs.size(); ++i) {
          ASSERT_TRUE(reports[i].status.ok()) << reports[i].status;
          ASSERT_EQ(reports[i].tokens, expected[i].tokens)
              << i << " " << policy.policy->name() << " forks " << forks;
        }
        int64_t sweeps = 0;
        for (const Report& report : reports) {
          sweeps = std::max(sweeps, report.sweeps);
        }
        if (forks != kForks) continue;
        EXPECT_LT(passes.passes, passes.steps) << policy.policy->name();
        if (policy.form == PolicyForm::kVerified) {
          // A sweep checks the blocks of all that have not ended; where several
          // have filled a page, some may wait for the next.
          EXPECT_GE(passes.sweeps, sweeps) << policy.policy->name();
          EXPECT_LE(passes.sweeps,
                    budget == Budget::kAll ? sweeps : sweeps * 5 / 4)
              << policy.policy->name();
          EXPECT_EQ(passes.passes > passes.sweeps, views);
        }
      }
    }
  }
}

// Questions that are read in the batch, some of them in slices.
TEST_F(BatchTiersTest, QuestionsAreReadBesideTheAnswers) {
  for (const PolicyParams& policy : Policies()) {
    SCOPED_TRACE(policy.policy->name());
    const std::vector<Job> jobs = Jobs(policy);
    const std::vector<Report> expected = Expected(jobs);
    for (const Budget budget : {Budget::kLeast, Budget::kMiddle}) {
      Tiered made = MakeTiered(*like_, OptionsOf(policy, kForks), budget);
      const auto sessions = Forks(std::move(made.session), jobs);
      Batch::Passes passes;
      const std::vector<Report> reports = AtOnce(jobs, sessions, &passes);
      for (size_t i = 0; i < jobs.size(); ++i) {
        ASSERT_TRUE(reports[i].status.ok()) << reports[i].status;
        ASSERT_EQ(reports[i].tokens, expected[i].tokens) << i;
        EXPECT_EQ(reports[i].sweeps, expected[i].sweeps) << i;
      }
      EXPECT_LE(passes.most_rows_beside, kMaxStepRows);
    }
  }
}

// Drafts that pass together wait for the rows of their views, which come over a
// slow link.
TEST_F(BatchTiersTest, DraftsAwaitTheirViews) {
  const PolicyParams triforce = SmallTriforce();
  std::vector<Job> jobs = Jobs(triforce);
  for (Job& job : jobs) job.params.max_tokens = 24;
  const std::vector<Report> expected = Expected(jobs);
  Tiered made = MakeTiered(*like_, OptionsOf(triforce, kForks), Budget::kLeast,
                           /*link=*/2e7);
  const auto sessions = Asked(std::move(made.session), jobs);
  const std::vector<Report> reports = AtOnce(jobs, sessions);
  for (size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(reports[i].tokens, expected[i].tokens) << i;
    // A draft over rows that a view lacks would not hold.
    EXPECT_EQ(reports[i].sweeps, expected[i].sweeps) << i;
  }
}

// A host that takes a share of sweeps leaves those of several to the device,
// and the bits are the same when one of them goes on alone.
TEST_F(BatchTiersTest, BesideAHostsShare) {
  std::vector<Job> jobs = Jobs({});
  for (const size_t i : {0, 2, 3}) jobs[i].params.max_tokens = 12;
  const std::vector<Report> expected = Expected(jobs);
  for (const Budget budget : {Budget::kLeast, Budget::kMiddle}) {
    const SessionOptions options = OptionsOf({}, kForks);
    Model::Options with = like_->options;
    with.machine.simulation = {
        {.bytes = BytesFor(*like_, options, budget) +
                  HostAttention::DeviceBytes(like_->config.heads),
         .link = {.bytes_per_s = 1e8},
         .host_bytes_per_s = 1e10}};
    const auto model = OpenModel(with);
    const auto sessions = Asked(MakeSession(*model, options), jobs);
    const auto host_pages = [&](size_t text) {
      return sessions[text]->traffic().moves.host_pages;
    };
    const int64_t before = host_pages(0);
    const std::vector<Report> reports = AtOnce(jobs, sessions);
    for (size_t i = 0; i < jobs.size(); ++i) {
      ASSERT_EQ(reports[i].tokens, expected[i].tokens) << i;
    }
    if (budget == Budget::kLeast) {
      EXPECT_GT(host_pages(1), 0);
      EXPECT_EQ(host_pages(0), before);
    }
  }
}

// With memory planned for the forks a sweep serves all of them.
TEST_F(BatchTiersTest, WhatTheyShareCrossesOnce) {
  std::vector<Job> jobs = Jobs({});
  for (Job& job : jobs) job.params.max_tokens = 33;
  const auto up_of = [&](bool at_once, Batch::Passes* passes) {
    Tiered made = MakeTiered(*like_, OptionsOf({}, kForks), Budget::kLeast);
    const auto sessions = Asked(std::move(made.session), jobs);
    const int64_t before = MovedUp(*sessions.front());
    if (at_once) {
      AtOnce(jobs, sessions, passes);
    } else {
      for (size_t i = 0; i < jobs.size(); ++i) {
        GenerateDrafted(*sessions[i], jobs[i].params, {});
        sessions[i]->runner().Rest();
      }
    }
    // Each page that moved is counted by one of them.
    Traffic all;
    for (const auto& session : sessions) all += session->traffic();
    const KvMoves& moves = all.moves;
    EXPECT_EQ(MovedUp(*sessions.front()),
              (moves.swept_pages + moves.reopened_pages) *
                      sessions.front()->kv().site().layout.PageBytes() +
                  moves.states_up_bytes);
    return MovedUp(*sessions.front()) - before;
  };
  Batch::Passes passes;
  const int64_t together = up_of(true, &passes);
  const int64_t alone = up_of(false, nullptr);
  EXPECT_EQ(passes.passes, 32);
  EXPECT_EQ(passes.steps, 4 * 32);
  // Five pages are shared, and each has one or two more.
  EXPECT_LT(together * 2, alone);
}

// A copy fails: each text has an error or is right as far as it goes, and its
// session then goes on to the same text. It may compute alone before the others
// know of the error.
TEST_F(BatchTiersTest, AfterALostCopyEachGoesOn) {
  PolicyParams ngram;
  ngram.proposer = Proposer::kNgram;
  const std::vector<Job> jobs = Jobs(ngram);
  const std::vector<Report> expected = Expected(jobs);
  int failed = 0;
  for (int64_t fail_at = 1; fail_at < 3000; fail_at = fail_at * 3 / 2 + 1) {
    Tiered made = MakeTiered(*like_, OptionsOf(ngram, kForks), Budget::kLeast);
    const auto sessions = Asked(std::move(made.session), jobs);
    FailingCall copy(Callee::kLink, "copy");
    copy.Arm(fail_at);
    const auto compute = [&](size_t i, const Report& report) {
      if (report.status.ok()) return;
      Session& session = *sessions[i];
      const size_t held = session.sequence().tokens().size();
      EXPECT_TRUE(Prefill(session, text_->data(), 20, kNoProgress).ok());
      session.Truncate(held);
    };
    const std::vector<Report> reports =
        AtOnce(jobs, sessions, /*passes=*/nullptr, compute);
    const bool happened = copy.happened();
    copy.Arm(std::numeric_limits<int64_t>::max());
    for (size_t i = 0; i < jobs.size(); ++i) {
      Ids text = reports[i].tokens;
      if (!reports[i].status.ok()) {
        ++failed;
        EXPECT_EQ(CodeOf(reports[i].status), "copy_failed");
        Job rest = jobs[i];
        rest.params.max_tokens -= std::ssize(text);
        const Report more = GenerateDrafted(*sessions[i], rest.params, ngram);
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
}  // namespace tiercel::batch_tiers_test
