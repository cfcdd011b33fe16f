// A token of a branch has the distribution that it would have as a token of the
// block itself.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "drafts/ngram.h"
#include "drafts/verdict.h"
#include "drafts/verifying_drafter.h"
#include "gtest/gtest.h"
#include "runtime/drafting/model_target.h"
#include "runtime/drafting/retrieval_kv.h"
#include "runtime/policies/policy.h"
#include "tests/drafting.h"
#include "tests/golden.h"
#include "tests/tiers.h"

namespace tiercel::branches_test {
namespace {

constexpr int kBranches = 6;
const DistributionParams kAll = {.temperature = 1};

class BranchesTest : public RepeatedTextTest<5> {
 protected:
  static Session::Options Options(int64_t branch_rows) {
    Session::Options options;
    options.retrieval = kSmallView;
    options.retrieval->branch_rows = branch_rows;
    options.branches = kBranches;
    return options;
  }

  static std::unique_ptr<ModelTarget> OverView(Session& session) {
    return std::make_unique<ModelTarget>(
        session, kAll,
        std::make_unique<RetrievalKv>(session, RetrievalKv::Options{}));
  }

  // The distribution of the token after `tokens`, by a draft of its own.
  static Distribution Behind(Session& session, const Ids& tokens) {
    const std::unique_ptr<ModelTarget> target = OverView(session);
    EXPECT_TRUE(target->Begin(tokens).ok());
    const int64_t end = session.draft_view().end();
    const auto made = target->Distributions({});
    session.draft_view().Truncate(end);
    EXPECT_TRUE(made.ok()) << made.status();
    return made->front();
  }

  // The greatest difference of two probabilities of one token.
  static double Apart(const Distribution& a, const Distribution& b) {
    double most = 0;
    for (const auto* from : {&a, &b}) {
      const Distribution& other = from == &a ? b : a;
      for (size_t i = 0; i < from->ids.size(); ++i) {
        most = std::max(most,
                        std::fabs(double{from->probabilities[i]} -
                                  double{ProbabilityOf(other, from->ids[i])}));
      }
    }
    return most;
  }

  static void ExpectDistributionsOfBlocks(Session& session) {
    ASSERT_TRUE(session.draft_view().CatchUp(Phase::kVerify).ok());
    ASSERT_TRUE(session.Append(&(*prompt_)[9], 1).ok());
    const std::unique_ptr<ModelTarget> target = OverView(session);
    NgramDrafter inner;
    VerifyingDrafter drafter(*target, {.name = "retrieval",
                                       .inner = &inner,
                                       .gamma1 = DraftLength::Fixed(3),
                                       .branches = kBranches});
    const Ids tokens = session.sequence().tokens();
    const int64_t end = session.draft_view().end();
    const auto block = drafter.Draft(tokens, 14, {.seed = 5, .start = 1});
    ASSERT_TRUE(block.ok()) << block.status();
    session.draft_view().Truncate(end);
    ASSERT_GE(block->branches.size(), 4u);
    size_t compared = 0;
    for (const DraftBranch& branch : block->branches) {
      Ids all = tokens;
      all.insert(all.end(), block->tokens.begin(),
                 block->tokens.begin() + static_cast<ptrdiff_t>(branch.at));
      for (size_t i = 1; i < branch.tokens.size(); ++i) {
        all.push_back(branch.tokens[i - 1]);
        const Distribution expected = Behind(session, all);
        // Sums over other cells are rounded otherwise.
        EXPECT_LT(Apart(branch.distributions[i], expected), 1e-4)
            << branch.at << " " << i;
        // Another place would show.
        EXPECT_GT(Apart(branch.distributions[i], block->distributions[0]),
                  1e-3);
        ++compared;
      }
    }
    EXPECT_GE(compared, 20u);
  }
};

TEST_F(BranchesTest, ATokenHasTheDistributionThatItHasInABlock) {
  const auto session = Prefilled(
      *model_, *prompt_, Options(kBranches * VerifyingDrafter::kBranchTokens));
  ExpectDistributionsOfBlocks(*session);
}

TEST_F(BranchesTest, OverRanksToo) {
  const auto model = OpenModel({.path = CheckpointPath("llama_chat.gguf"),
                                .machine = {.threads = 2},
                                .ranks = 2});
  const auto session = Prefilled(
      *model, *prompt_, Options(kBranches * VerifyingDrafter::kBranchTokens));
  ExpectDistributionsOfBlocks(*session);
}

// The ring has cells for the rows of all branches, behind those of the longest
// draft.
TEST_F(BranchesTest, TheViewHasRoomForTheirRows) {
  for (const int64_t rows : {int64_t{0}, int64_t{64}, int64_t{200}}) {
    const auto session = Prefilled(*model_, *prompt_, Options(rows));
    ASSERT_TRUE(session->draft_view().CatchUp(Phase::kVerify).ok());
    EXPECT_TRUE(session->draft_view().HasRoom(kMaxStepRows));
    const CompactKv& kv = session->draft_view().first().kv();
    EXPECT_GE(kv.RecentRoom(),
              kv.end() - kv.recent_begin() + kMaxStepRows + rows);
    for (int64_t more = 0; more < 300; ++more) {
      EXPECT_EQ(session->draft_view().HasRoom(more),
                kv.RecentRoom() >= kv.end() - kv.recent_begin() + more + rows);
    }
  }
  PolicyParams params = SmallTriforce();
  params.branches = 3;
  EXPECT_EQ(params.RetrievalView()->branch_rows,
            3 * VerifyingDrafter::kBranchTokens);
}

}  // namespace
}  // namespace tiercel::branches_test
