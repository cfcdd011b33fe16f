// The round with its real noise: distributions by counting, keys, errors.

#include "drafts/verify.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "drafts/tables_for_test.h"
#include "drafts/verifying_drafter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/token/counts_for_test.h"

namespace tiercel {
namespace {

constexpr int kVocab = 6;
constexpr int64_t kStart = 1000;

// Generates `length` tokens by rounds of `most` drafted tokens.
Ids Speculated(const Tables& target_distributions,
               const Tables& draft_distributions, uint64_t seed,
               VerifyMode mode, int64_t most, size_t length,
               size_t* drafted = nullptr, size_t* accepted = nullptr) {
  TableTarget target(target_distributions);
  TableDrafter drafter(draft_distributions);
  drafter.coupled = mode == VerifyMode::kCoupled;
  Ids tokens;
  while (tokens.size() < length) {
    target.tokens = tokens;
    const DrawKey key = {.seed = seed,
                         .start = kStart + static_cast<int64_t>(tokens.size())};
    const absl::StatusOr<VerifiedBlock> block =
        VerifyRound(tokens, most, mode, key, &drafter, target);
    EXPECT_TRUE(block.ok());
    if (!block.ok()) return tokens;
    EXPECT_EQ(block->tokens.size(), block->accepted + 1);
    EXPECT_EQ(block->distributions.size(), block->tokens.size());
    Ids with = tokens;
    for (size_t i = 0; i < block->tokens.size(); ++i) {
      EXPECT_EQ(block->distributions[i].ids,
                target_distributions.After(with).ids);
      with.push_back(block->tokens[i]);
    }
    EXPECT_EQ(target.tokens, with);
    if (drafted != nullptr) *drafted += block->drafted;
    if (accepted != nullptr) *accepted += block->accepted;
    tokens = with;
  }
  tokens.resize(length);
  return tokens;
}

Ids Plain(const Tables& distributions, uint64_t seed, size_t length) {
  Ids tokens;
  while (tokens.size() < length) {
    tokens.push_back(Draw(distributions.After(tokens), seed,
                          kStart + static_cast<int64_t>(tokens.size())));
  }
  return tokens;
}

TEST(VerifyTest, CoupledTextIsThePlainSamplers) {
  const Tables target(kVocab, 1);
  const Tables draft(kVocab, 2);
  size_t drafted = 0;
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (int64_t most : {0, 1, 3, 8}) {
      ASSERT_EQ(Speculated(target, draft, seed, VerifyMode::kCoupled, most, 20,
                           &drafted, &accepted),
                Plain(target, seed, 20))
          << seed << " " << most;
    }
  }
  EXPECT_GT(accepted, 0u);
  EXPECT_LT(accepted, drafted);
}

TEST(VerifyTest, ResidualTextHasTheTargetsDistribution) {
  constexpr int64_t kSamples = 20'000;
  constexpr size_t kLength = 3;
  const Tables target(kVocab, 3);
  const Tables draft(kVocab, 4);
  for (int64_t most : {1, 2, 4}) {
    std::map<Ids, int64_t> counts;
    for (int64_t seed = 0; seed < kSamples; ++seed) {
      ++counts[Speculated(target, draft, static_cast<uint64_t>(seed),
                          VerifyMode::kResidual, most, kLength)];
    }
    ExpectCounts(OutputDistribution(target, kLength), counts);
  }
}

// Few outputs and many samples, so that noise shared by two decisions shows.
// With TIERCEL_ALL_SEEDS there are so many (1.5 to 2.4 million) that a total
// variation of 0.3 % is not chance.
TEST(VerifyTest, EveryDecisionHasNoiseOfItsOwn) {
  constexpr double kVariation = 0.003;
  const bool all = std::getenv("TIERCEL_ALL_SEEDS") != nullptr;
  const struct {
    int vocab;
    int64_t most;
    size_t length;
    int64_t some;
  } cases[] = {{3, 2, 2, 60'000}, {3, 1, 3, 20'000}, {2, 2, 4, 20'000}};
  for (const auto& [vocab, most, length, some] : cases) {
    for (uint32_t tables : {1u, 2u}) {
      const Tables target(vocab, 10 + tables);
      const Tables draft(vocab, 20 + tables);
      const std::map<Ids, double> distribution =
          OutputDistribution(target, length);
      const int64_t samples =
          all ? SamplesFor(static_cast<double>(distribution.size()), kVariation)
              : some;
      std::map<Ids, int64_t> counts;
      for (int64_t seed = 0; seed < samples; ++seed) {
        ++counts[Speculated(target, draft, static_cast<uint64_t>(seed),
                            VerifyMode::kResidual, most, length)];
      }
      const double variation = ExpectCounts(distribution, counts);
      if (all) {
        EXPECT_LT(variation, kVariation);
      }
    }
  }
}

// Half of the block's tokens hold, and half of the branches where they do not.
TEST(VerifyTest, ABranchIsJudgedByNoiseOfItsOwn) {
  constexpr int kSamples = 20'000;
  class Certain final : public Drafter {
   public:
    const char* name() const override { return "certain"; }
    absl::StatusOr<DraftBlock> Draft(const Ids&, int64_t,
                                     const DrawKey&) override {
      DraftBlock block = {{0}, {{{0}, {1.0f}}}};
      block.branches.push_back({.at = 0, .tokens = {1}, .distributions = {}});
      block.branches[0].distributions.push_back({{1}, {1.0f}});
      return block;
    }
  };
  class Fixed final : public Target {
   public:
    absl::StatusOr<std::vector<Distribution>> Distributions(
        const Ids&) override {
      return std::vector<Distribution>{{{0, 1, 2}, {0.5f, 0.25f, 0.25f}},
                                       {{3}, {1.0f}}};
    }
    absl::StatusOr<TreeDistributions> OfTree(const DraftBlock&) override {
      ASSIGN_OR_RETURN(std::vector<Distribution> all, Distributions({}));
      return TreeDistributions{all, {{all[1]}}};
    }
    absl::Status Keep(size_t, absl::Span<const int32_t>) override {
      return absl::OkStatus();
    }
  };
  std::map<Ids, int64_t> counts;
  for (uint64_t seed = 0; seed < kSamples; ++seed) {
    Certain drafter;
    Fixed target;
    const absl::StatusOr<VerifiedBlock> block = VerifyRound(
        {}, 1, VerifyMode::kResidual, {.seed = seed}, &drafter, target);
    ASSERT_TRUE(block.ok());
    ++counts[block->tokens];
  }
  ExpectCounts({{{0, 3}, 0.5}, {{1, 3}, 0.25}, {{2}, 0.25}}, counts);
}

TEST(VerifyTest, AcceptanceIsTheCommonPart) {
  constexpr size_t kSamples = 20'000;
  const Tables target(kVocab, 5);
  const Tables draft(kVocab, 6);
  double common = 0;
  const Distribution& p = target.After({});
  const Distribution& q = draft.After({});
  for (size_t i = 0; i < q.ids.size(); ++i) {
    const auto other = std::find(p.ids.begin(), p.ids.end(), q.ids[i]);
    if (other == p.ids.end()) continue;
    common +=
        std::min(q.probabilities[i],
                 p.probabilities[static_cast<size_t>(other - p.ids.begin())]);
  }
  ASSERT_GT(common, 0.1);
  ASSERT_LT(common, 0.9);
  size_t drafted = 0;
  size_t accepted = 0;
  for (uint64_t seed = 0; seed < kSamples; ++seed) {
    (void)Speculated(target, draft, seed, VerifyMode::kResidual, 1, 1, &drafted,
                     &accepted);
  }
  ASSERT_EQ(drafted, kSamples);
  const double bound =
      std::sqrt(std::log(2e6) / (2 * static_cast<double>(kSamples)));
  EXPECT_NEAR(static_cast<double>(accepted) / kSamples, common, bound);
}

// Tokens that held are kept, the last of them as the one that follows. The
// next round adds nothing.
TEST(VerifyTest, ATextEndsWhereNothingMayFollow) {
  constexpr int32_t kLast = 2;
  Tables distributions(kVocab, 8);
  distributions.EndBehind(kLast);
  Tables small_distributions(kVocab, 9);
  for (const bool draft_ends : {false, true}) {
    if (draft_ends) small_distributions.EndBehind(kLast);
    for (const VerifyMode mode :
         {VerifyMode::kCoupled, VerifyMode::kResidual}) {
      for (const int branches : {0, 2}) {
        for (uint64_t seed = 0; seed < 100; ++seed) {
          TableTarget target(distributions);
          TableTarget middle(distributions);
          TableTarget small(small_distributions);
          VerifyingDrafter inner(small, {.mode = mode});
          VerifyingDrafter outer(middle, {.mode = mode,
                                          .inner = &inner,
                                          .gamma1 = DraftLength::Fixed(2),
                                          .branches = branches});
          Ids tokens;
          for (;;) {
            const DrawKey key = {.seed = seed,
                                 .start = kStart + std::ssize(tokens)};
            const absl::StatusOr<VerifiedBlock> block =
                VerifyRound(tokens, 4, mode, key, &outer, target);
            ASSERT_TRUE(block.ok());
            EXPECT_EQ(block->distributions.size(), block->tokens.size());
            const size_t before = tokens.size();
            tokens.insert(tokens.end(), block->tokens.begin(),
                          block->tokens.end());
            ASSERT_EQ(target.tokens, tokens);
            if (tokens.size() == before) break;
          }
          ASSERT_EQ(std::find(tokens.begin(), tokens.end(), kLast),
                    tokens.end() - 1);
          if (mode == VerifyMode::kCoupled) {
            ASSERT_EQ(Plain(distributions, seed, tokens.size()), tokens);
          }
        }
      }
    }
  }
}

TEST(VerifyTest, EveryDrawHasAKeyOfItsOwn) {
  std::set<uint64_t> seeds;
  size_t keys = 0;
  const auto add = [&](const DrawKey& key) {
    for (Purpose purpose :
         {Purpose::kDraft, Purpose::kAccept, Purpose::kReplace,
          Purpose::kNested, Purpose::kBranch, Purpose::kAcceptBranch}) {
      seeds.insert(key.SeedFor(purpose));
      ++keys;
    }
  };
  for (uint64_t seed : {0, 1}) {
    for (uint32_t output : {0u, 1u}) {
      for (int64_t start : {5, 6, 7}) {
        const DrawKey outer = {.seed = seed, .output = output, .start = start};
        add(outer);
        // At every depth a position draws anew within each block.
        for (int64_t middle : {7, 8}) {
          add(outer.Within(middle));
          add(outer.Branch(middle));
          add(outer.Branch(middle).Within(9));
          for (int64_t inner : {8, 9}) add(outer.Within(middle).Within(inner));
        }
      }
    }
  }
  EXPECT_EQ(seeds.size(), keys);
}

TEST(VerifyTest, ErrorsChangeNothing) {
  const Tables distributions(kVocab, 7);
  TableTarget target(distributions);
  TableDrafter drafter(distributions);
  const auto round = [&] {
    return VerifyRound({}, 3, VerifyMode::kResidual, {}, &drafter, target);
  };
  drafter.fails = true;
  EXPECT_FALSE(round().ok());
  drafter.fails = false;
  target.fails = true;
  EXPECT_FALSE(round().ok());
  EXPECT_TRUE(target.tokens.empty());
  target.fails = false;
  EXPECT_TRUE(round().ok());
  EXPECT_EQ(target.tokens.size(), 4u);  // the draft is the target, so all holds
}

}  // namespace
}  // namespace tiercel
