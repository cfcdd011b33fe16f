// Nested levels with their real noise. verdict_test shows that the rule itself
// is right.

#include "drafts/verifying_drafter.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>

#include "drafts/tables_for_test.h"
#include "drafts/verdict.h"
#include "gtest/gtest.h"
#include "kernels/token/counts_for_test.h"

namespace tiercel::verifying_drafter_test {
namespace {

constexpr int64_t kStart = 1000;

// Three models; each deeper level is a worse guess of the one above.
struct Chain {
  Tables target;
  Tables middle;
  Tables small;
};

struct Lengths {
  int64_t outer = 3;
  int64_t inner = 2;
  bool adaptive = false;  // grow the block while all holds
  int branches = 0;
};

// Generates `length` tokens by two levels of rounds, and adds up the counts of
// each level.
Ids Speculated(const Chain& chain, uint64_t seed, VerifyMode mode,
               const Lengths& lengths, size_t length,
               std::vector<DraftLevel>* levels = nullptr) {
  TableTarget target(chain.target);
  TableTarget middle(chain.middle);
  TableTarget small(chain.small);
  VerifyingDrafter inner(small, {.name = "small", .mode = mode});
  VerifyingDrafter outer(middle, {.name = "middle",
                                  .mode = mode,
                                  .inner = &inner,
                                  .gamma1 = DraftLength::Fixed(lengths.inner),
                                  .branches = lengths.branches});
  Ids tokens;
  DraftLevel outermost = {outer.name()};
  int64_t most = lengths.outer;
  while (tokens.size() < length) {
    const DrawKey key = {.seed = seed,
                         .start = kStart + static_cast<int64_t>(tokens.size())};
    const absl::StatusOr<VerifiedBlock> block =
        VerifyRound(tokens, most, mode, key, &outer, target);
    EXPECT_TRUE(block.ok());
    if (!block.ok()) return tokens;
    EXPECT_EQ(block->drafted, static_cast<size_t>(most));
    outermost.Count(block->drafted, block->accepted);
    outermost.branches += static_cast<int64_t>(block->branches);
    outermost.branch_accepted += static_cast<int64_t>(block->branch_accepted);
    EXPECT_EQ(block->tokens.size(),
              block->accepted + block->branch_accepted + 1);
    EXPECT_EQ(block->distributions.size(), block->tokens.size());
    tokens.insert(tokens.end(), block->tokens.begin(), block->tokens.end());
    EXPECT_EQ(target.tokens, tokens);
    if (lengths.adaptive) {
      most = block->accepted == block->drafted ? most + 1 : 1;
    }
  }
  if (levels != nullptr) {
    std::vector<DraftLevel> all = outer.inner_levels();
    all.push_back(outermost);
    levels->resize(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      (*levels)[i].drafter = all[i].drafter;
      (*levels)[i].drafted += all[i].drafted;
      (*levels)[i].checked += all[i].checked;
      (*levels)[i].accepted += all[i].accepted;
      (*levels)[i].branches += all[i].branches;
      (*levels)[i].branch_accepted += all[i].branch_accepted;
    }
  }
  tokens.resize(length);
  return tokens;
}

TEST(VerifyingDrafterTest, CoupledTextIsThePlainSamplers) {
  const Chain chain = {Tables(6, 1), Tables(6, 2), Tables(6, 3)};
  std::vector<DraftLevel> levels;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Ids plain;
    while (plain.size() < 20) {
      plain.push_back(Draw(chain.target.After(plain), seed,
                           kStart + static_cast<int64_t>(plain.size())));
    }
    for (int64_t outer : {1, 2, 5}) {
      for (int64_t inner : {1, 3}) {
        for (bool adaptive : {false, true}) {
          for (int branches : {0, 1, 3}) {
            ASSERT_EQ(
                Speculated(chain, seed, VerifyMode::kCoupled,
                           {outer, inner, adaptive, branches}, 20, &levels),
                plain)
                << seed << " " << outer << " " << inner << " " << adaptive
                << " " << branches;
          }
        }
      }
    }
  }
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_STREQ(levels[0].drafter, "small");
  EXPECT_STREQ(levels[1].drafter, "middle");
  for (const DraftLevel& level : levels) {
    EXPECT_GT(level.accepted, 0);
    EXPECT_LT(level.accepted, level.checked);
    EXPECT_LT(level.checked, level.drafted);
  }
}

// A second choice stands in another token's place, and what follows it was
// drafted behind it.
TEST(VerifyingDrafterTest, BranchesLeaveTheBlockWhereItMayErr) {
  const Tables distributions(6, 61);
  const Tables small_distributions(6, 62);
  size_t made = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    TableTarget target(distributions);
    TableTarget small(small_distributions);
    VerifyingDrafter inner(small, {.name = "small"});
    VerifyingDrafter outer(target, {.name = "middle",
                                    .inner = &inner,
                                    .gamma1 = DraftLength::Fixed(2),
                                    .branches = 2});
    const absl::StatusOr<DraftBlock> block =
        outer.Draft({3}, 5, {.seed = seed, .start = 1});
    ASSERT_TRUE(block.ok());
    made += block->branches.size();
    EXPECT_LE(block->branches.size(), 2u);
    int64_t longest = 1;
    for (const DraftBranch& branch : block->branches) {
      longest = std::max<int64_t>(longest, std::ssize(branch.tokens));
      ASSERT_LT(branch.at, block->tokens.size());
      ASSERT_EQ(branch.tokens.size(), block->tokens.size() - branch.at);
      ASSERT_EQ(branch.distributions.size(), branch.tokens.size());
      const int32_t token = block->tokens[branch.at];
      const Distribution& whole = block->distributions[branch.at];
      EXPECT_NE(branch.tokens[0], token);
      EXPECT_EQ(branch.distributions[0].ids, WithoutToken(whole, token).ids);
      Ids before = {branch.tokens[0]};
      for (size_t i = 1; i < branch.tokens.size(); ++i) {
        EXPECT_EQ(branch.distributions[i].ids, distributions.After(before).ids);
        before.push_back(branch.tokens[i]);
      }
    }
    EXPECT_EQ(target.branch_passes, longest - 1);  // all grow in one pass
    // The first token always counts: a less likely one has a branch before it.
    const auto has = [&](size_t at) {
      return std::any_of(block->branches.begin(), block->branches.end(),
                         [at](const DraftBranch& b) { return b.at == at; });
    };
    const auto sure = [&](size_t at) {
      return ProbabilityOf(block->distributions[at], block->tokens[at]);
    };
    if (has(1) && !has(0) && block->branches.size() == 2) {
      EXPECT_LT(sure(1), sure(0));
    }
  }
  EXPECT_GT(made, 200u);
}

// Under coupled rounds a branch goes on as the target itself would.
TEST(VerifyingDrafterTest, CoupledBranchesAreDrawnWithTheNoise) {
  const Tables distributions(6, 63);
  size_t drawn = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    TableTarget target(distributions);
    VerifyingDrafter drafter(
        target,
        {.name = "middle", .mode = VerifyMode::kCoupled, .branches = 2});
    const auto block = drafter.Draft({3}, 12, {.seed = seed, .start = kStart});
    ASSERT_TRUE(block.ok());
    for (const DraftBranch& branch : block->branches) {
      EXPECT_LE(branch.tokens.size(), 8u);
      for (size_t i = 0; i < branch.tokens.size(); ++i) {
        EXPECT_EQ(branch.tokens[i],
                  Draw(branch.distributions[i], seed,
                       kStart + static_cast<int64_t>(branch.at + i)));
        ++drawn;
      }
    }
  }
  EXPECT_GT(drawn, 200u);
}

// A greedy draft has no other token, so the one that came second begins the
// branch, where the two were closest.
TEST(VerifyingDrafterTest, GreedyBranchesBeginWithWhatCameSecond) {
  Tables greedy(6, 64);
  for (int32_t id = 0; id < 6; ++id) {
    Distribution after = {{(id + 1) % 6}, {1.0f}};
    after.second = (id + 3) % 6;
    after.second_share = id == 4 ? 0.4f : 0.1f;
    greedy.Set(id, after);
  }
  for (const VerifyMode mode : {VerifyMode::kResidual, VerifyMode::kCoupled}) {
    TableTarget target(greedy);
    VerifyingDrafter drafter(target,
                             {.name = "middle", .mode = mode, .branches = 1});
    const auto block = drafter.Draft({3}, 4, {.seed = 7, .start = 1});
    ASSERT_TRUE(block.ok());
    EXPECT_EQ(block->tokens, (Ids{4, 5, 0, 1}));
    ASSERT_EQ(block->branches.size(), 1u);
    EXPECT_EQ(block->branches[0].at, 1u);  // behind 4
    EXPECT_EQ(block->branches[0].tokens, (Ids{1, 2, 3}));
    EXPECT_EQ(block->branches[0].distributions[0].ids, Ids{1});
    // A target that takes the second choice goes on in the branch.
    Tables other = greedy;
    other.Set(4, {{1}, {1.0f}});
    TableTarget checks(other);
    ASSERT_TRUE(checks.Begin({3}).ok());
    const auto round =
        VerifyRound({3}, 4, mode, {.seed = 7, .start = 1}, &drafter, checks);
    ASSERT_TRUE(round.ok());
    EXPECT_EQ(round->tokens, (Ids{4, 1, 2, 3, 4}));
    EXPECT_EQ(round->branch_accepted, 3u);
  }
}

TEST(DraftLevelTest, WhatFollowsTheFirstThatDidNotHoldIsNotChecked) {
  DraftLevel level;
  level.Count(4, 4);
  level.Count(4, 1);
  level.Count(1, 0);
  level.Count(0, 0);
  EXPECT_EQ(level.drafted, 9);
  EXPECT_EQ(level.checked, 7);
  EXPECT_EQ(level.accepted, 5);
}

TEST(VerifyingDrafterTest, ResidualTextHasTheTargetsDistribution) {
  const int64_t samples =
      std::getenv("TIERCEL_ALL_SEEDS") != nullptr ? 30'000 : 8'000;
  constexpr size_t kLength = 3;
  const Tables target(3, 31);
  const struct {
    const char* name;
    Chain chain;
  } cases[] = {
      {"three models", {target, Tables(3, 32), Tables(3, 33)}},
      // The upper level rejects nothing, so a bias from below comes out whole.
      {"the middle is the target", {target, target, Tables(3, 34)}},
      {"all are the target", {target, target, target}},
      // Here second choices hold by chance, too.
      {"five tokens", {Tables(5, 35), Tables(5, 36), Tables(5, 37)}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    for (const Lengths lengths :
         {Lengths{1, 1}, Lengths{3, 2}, Lengths{2, 2, true},
          Lengths{1, 1, false, 1}, Lengths{3, 2, false, 2}}) {
      std::map<Ids, int64_t> counts;
      for (int64_t seed = 0; seed < samples; ++seed) {
        ++counts[Speculated(c.chain, static_cast<uint64_t>(seed),
                            VerifyMode::kResidual, lengths, kLength)];
      }
      ExpectCounts(OutputDistribution(c.chain.target, kLength), counts);
    }
  }
}

// The distribution recorded for a token is the one that it was drawn from,
// whichever level drafted it.
TEST(VerifyingDrafterTest, EveryTokenHasTheMiddlesDistribution) {
  constexpr int64_t kSamples = 30'000;
  const Tables middle_distributions(3, 41);
  const Tables small_distributions(3, 42);
  std::map<Ids, int64_t> counts;
  for (int64_t seed = 0; seed < kSamples; ++seed) {
    TableTarget middle(middle_distributions);
    TableTarget small(small_distributions);
    VerifyingDrafter inner(small, {.name = "small"});
    VerifyingDrafter outer(
        middle,
        {.name = "middle", .inner = &inner, .gamma1 = DraftLength::Fixed(2)});
    const absl::StatusOr<DraftBlock> block =
        outer.Draft({}, 3, {.seed = static_cast<uint64_t>(seed)});
    ASSERT_TRUE(block.ok());
    ASSERT_EQ(block->tokens.size(), 3u);
    ASSERT_EQ(block->distributions.size(), 3u);
    Ids before;
    for (size_t i = 0; i < 3; ++i) {
      const Distribution& distribution = middle_distributions.After(before);
      EXPECT_EQ(block->distributions[i].ids, distribution.ids);
      EXPECT_EQ(block->distributions[i].probabilities,
                distribution.probabilities);
      before.push_back(block->tokens[i]);
    }
    ++counts[block->tokens];
  }
  ExpectCounts(OutputDistribution(middle_distributions, 3), counts);
}

// A tail that is drafted once more gets other noise, though it lies at the same
// positions, since the block around it begins elsewhere.
TEST(VerifyingDrafterTest, ARedraftIsAnotherDraw) {
  constexpr int64_t kSeeds = 2000;
  const Tables distributions(6, 51);
  int64_t equal = 0;
  for (int64_t seed = 0; seed < kSeeds; ++seed) {
    Ids drawn[2];
    for (int64_t start : {0, 1}) {
      TableTarget target(distributions);
      VerifyingDrafter drafter(target, {.name = "self"});
      const DrawKey outer = {.seed = static_cast<uint64_t>(seed),
                             .start = start};
      const absl::StatusOr<DraftBlock> block =
          drafter.Draft({0}, 1, outer.Within(1));
      ASSERT_TRUE(block.ok());
      drawn[start] = block->tokens;
    }
    equal += drawn[0] == drawn[1];
  }
  EXPECT_LT(equal, kSeeds * 9 / 10);
}

TEST(VerifyingDrafterTest, InnerLengthsFollowWhatHolds) {
  constexpr int64_t kMost = 200;
  const Tables distributions(6, 71);
  const Tables other(6, 72);
  const auto held = [&](const Tables& small, const DraftLength& length) {
    TableTarget middle(distributions);
    TableDrafter inner(small);
    VerifyingDrafter drafter(
        middle, {.name = "middle", .inner = &inner, .gamma1 = length});
    EXPECT_TRUE(drafter.Draft({}, kMost, {.seed = 5}).ok());
    return drafter.inner_levels().at(0);
  };
  // Drafts from the target's own distributions always hold, others seldom: long
  // drafts pay, or do not.
  const DraftLevel same = held(distributions, DraftLength::Adaptive(8));
  EXPECT_EQ(same.accepted, same.drafted);
  EXPECT_EQ(same.cost_ratio, 8);
  const DraftLevel wrong = held(other, DraftLength::Adaptive(8));
  const DraftLevel fixed = held(other, DraftLength::Fixed(8));
  EXPECT_LT(wrong.drafted, fixed.drafted / 2);
  // A round gives the tokens that held and one more, which gives the number of
  // rounds.
  EXPECT_LE(kMost - same.accepted, 12);
}

TEST(VerifyingDrafterTest, ErrorsComeOut) {
  const Tables distributions(6, 61);
  TableTarget middle(distributions);
  TableDrafter inner(distributions);
  VerifyingDrafter drafter(
      middle,
      {.name = "middle", .inner = &inner, .gamma1 = DraftLength::Fixed(2)});
  inner.fails = true;
  EXPECT_FALSE(drafter.Draft({}, 4, {}).ok());
  inner.fails = false;
  middle.fails = true;
  EXPECT_FALSE(drafter.Draft({}, 4, {}).ok());
  middle.fails = false;
  EXPECT_TRUE(drafter.Draft({}, 4, {}).ok());
}

}  // namespace
}  // namespace tiercel::verifying_drafter_test
