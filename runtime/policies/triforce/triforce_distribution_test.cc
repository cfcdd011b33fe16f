// Counts whole generations: with --verify residual outputs have the
// distribution of plain sampling, whichever drafter proposes and whatever its
// lengths.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/token/counts_for_test.h"
#include "runtime/generate/generate.h"
#include "runtime/policies/policy.h"
#include "runtime/policies/policy_kind.h"
#include "tests/drafting.h"
#include "tests/golden.h"

namespace tiercel::triforce_distribution_test {
namespace {

constexpr size_t kBins = 512;
constexpr int64_t kTokens = 4;
using Counts = std::array<int64_t, kBins>;

int64_t Samples() {
  return std::getenv("TIERCEL_ALL_SEEDS") != nullptr ? 20'000 : 3'000;
}

size_t BinOf(const Ids& tokens) {
  uint64_t hash = 1469598103934665603u;
  for (int32_t id : tokens) {
    hash = (hash ^ static_cast<uint64_t>(id)) * 1099511628211u;
  }
  return (hash >> 20) % kBins;
}

// The distance between two samples of one size, in ChiSquareDeviations.
double Deviations(const Counts& a, const Counts& b) {
  double statistic = 0;
  double freedom = -1;
  double rest_a = 0;
  double rest_b = 0;
  const auto add = [&](double x, double y) {
    statistic += (x - y) * (x - y) / (x + y);
    freedom += 1;
  };
  for (size_t bin = 0; bin < kBins; ++bin) {
    const auto x = static_cast<double>(a[bin]);
    const auto y = static_cast<double>(b[bin]);
    if (x + y < 10) {  // too few for the approximation: together
      rest_a += x;
      rest_b += y;
    } else {
      add(x, y);
    }
  }
  if (rest_a + rest_b > 0) add(rest_a, rest_b);
  return ChiSquareDeviations(statistic, freedom);
}

class TriForceDistributionTest : public testing::Test {
 protected:
  TriForceDistributionTest() {
    // The text is so long that every pair of tokens occurs: looking back always
    // finds one.
    uint32_t state = 1;
    for (int i = 0; i < 400; ++i) {
      state = state * 1664525 + 1013904223;
      prompt_.push_back(static_cast<int32_t>(state >> 16) % 12);
    }
  }

  // The outputs of seeds first to first + Samples() - 1.
  Counts Sampled(uint64_t first, const PolicyParams* choice) {
    const auto session =
        Prefilled(*model_, prompt_, {.retrieval = RetrievalSize{8, 16, 8, 8}});
    Counts counts = {};
    for (int64_t i = 0; i < Samples(); ++i) {
      session->Truncate(prompt_.size());
      const GenerateParams params = {
          .max_tokens = kTokens,
          .seed = first + static_cast<uint64_t>(i),
          .distribution = {.temperature = 0.5f, .top_p = 0.95f},
          .ignore_eos = true,
          .stops = {}};
      const Report report = choice == nullptr
                                ? Generate(*session, params, nullptr)
                                : GenerateDrafted(*session, params, *choice);
      EXPECT_TRUE(report.status.ok()) << report.status;
      for (const DraftLevel& level : report.rounds.levels) {
        held_ += level.accepted;
        refused_ += level.drafted - level.accepted;
        in_branches_ += level.branch_accepted;
      }
      ++counts[BinOf(report.tokens)];
    }
    return counts;
  }

  const std::unique_ptr<Model> model_ = OpenModel(
      {.path = CheckpointPath("tiny_vocab.gguf"), .machine = {.threads = 1}});
  Ids prompt_;
  int64_t held_ = 0;
  int64_t refused_ = 0;
  int64_t in_branches_ = 0;
};

TEST_F(TriForceDistributionTest, OutputsHaveTheDistributionOfPlainSampling) {
  const Counts plain = Sampled(0, nullptr);
  // The statistic of two plain samples shows the size of chance.
  EXPECT_LT(Deviations(plain, Sampled(1'000'000, nullptr)), kOneInAMillion);
  uint64_t first = 2'000'000;
  for (const Proposer proposer :
       {Proposer::kNone, Proposer::kNgram, Proposer::kSelf}) {
    for (const DraftLength& length :
         {DraftLength::Fixed(3), DraftLength::Adaptive(3)}) {
      for (const PolicyKind* policy :
           {PolicyNamed("full"), PolicyNamed("triforce")}) {
        if (policy == PolicyNamed("full") && proposer == Proposer::kNone)
          continue;
        const PolicyParams choice = {.policy = policy,
                                     .proposer = proposer,
                                     .verify = VerifyMode::kResidual,
                                     .gamma1 = length,
                                     .gamma2 = length};
        held_ = refused_ = 0;
        EXPECT_LT(Deviations(plain, Sampled(first, &choice)), kOneInAMillion)
            << "proposer " << static_cast<int>(proposer) << ", cost ratio "
            << length.cost_ratio() << ", policy " << policy->name();
        EXPECT_GT(held_, 0);
        EXPECT_GT(refused_, 0);
        first += 1'000'000;
      }
    }
  }
  const PolicyParams branching = {.policy = PolicyNamed("triforce"),
                                  .proposer = Proposer::kNgram,
                                  .verify = VerifyMode::kResidual,
                                  .gamma1 = DraftLength::Fixed(2),
                                  .gamma2 = DraftLength::Fixed(3),
                                  .branches = 2};
  in_branches_ = 0;
  EXPECT_LT(Deviations(plain, Sampled(first, &branching)), kOneInAMillion);
  EXPECT_GT(in_branches_, 0);
}

}  // namespace
}  // namespace tiercel::triforce_distribution_test
