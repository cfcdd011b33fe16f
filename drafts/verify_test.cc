// The round with its real noise: laws by counting, keys, errors.

#include "drafts/verify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/error.h"

namespace tiercel {
namespace {

using Ids = std::vector<int32_t>;

// Laws by the last token, of a few tokens each.
class Tables {
 public:
  Tables(int vocab, uint32_t seed) {
    std::mt19937 random(seed);
    for (int row = 0; row <= vocab; ++row) {
      Law law;
      float total = 0;
      for (int32_t id = 0; id < vocab; ++id) {
        const auto weight = static_cast<float>(random() % 4);
        if (weight == 0.0f) continue;  // as a cut would
        law.ids.push_back(id);
        law.probabilities.push_back(weight);
        total += weight;
      }
      if (law.ids.empty()) {
        law = {{row % vocab}, {1.0f}};
        total = 1;
      }
      for (float& p : law.probabilities) p /= total;
      rows_.push_back(law);
    }
  }
  const Law& After(const Ids& tokens) const {
    return tokens.empty() ? rows_.back()
                          : rows_[static_cast<size_t>(tokens.back())];
  }

 private:
  std::vector<Law> rows_;
};

class TableDrafter final : public Drafter {
 public:
  explicit TableDrafter(const Tables& laws) : laws_(laws) {}
  const char* name() const override { return "table"; }
  absl::StatusOr<DraftBlock> Draft(const Ids& tokens, int64_t most,
                                   const DrawKey& key) override {
    if (fails) return InternalError("internal", "no draft");
    DraftBlock block;
    Ids all = tokens;
    for (int64_t i = 0; i < most; ++i) {
      block.laws.push_back(laws_.After(all));
      block.tokens.push_back(Draw(
          block.laws.back(), coupled ? key.seed : key.SeedFor(Purpose::kDraft),
          key.start + i));
      all.push_back(block.tokens.back());
    }
    return block;
  }
  bool fails = false;
  bool coupled = false;

 private:
  const Tables& laws_;
};

class TableTarget final : public Target {
 public:
  explicit TableTarget(const Tables& laws) : laws_(laws) {}
  absl::StatusOr<std::vector<Law>> Laws(const Ids& block) override {
    if (fails) return InternalError("internal", "no laws");
    pending_ = block;
    std::vector<Law> laws;
    Ids all = tokens;
    laws.push_back(laws_.After(all));
    for (int32_t id : block) {
      all.push_back(id);
      laws.push_back(laws_.After(all));
    }
    return laws;
  }
  absl::Status Keep(size_t count) override {
    tokens.insert(tokens.end(), pending_.begin(),
                  pending_.begin() + static_cast<std::ptrdiff_t>(count));
    return absl::OkStatus();
  }
  Ids tokens;
  bool fails = false;

 private:
  const Tables& laws_;
  Ids pending_;
};

constexpr int kVocab = 6;
constexpr int64_t kStart = 1000;

// `length` tokens by rounds of `most` drafted tokens.
Ids Speculated(const Tables& target_laws, const Tables& draft_laws,
               uint64_t seed, VerifyMode mode, int64_t most, size_t length,
               size_t* drafted = nullptr, size_t* accepted = nullptr) {
  TableTarget target(target_laws);
  TableDrafter drafter(draft_laws);
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
    EXPECT_EQ(block->laws.size(), block->tokens.size());
    Ids with = tokens;
    for (size_t i = 0; i < block->tokens.size(); ++i) {
      EXPECT_EQ(block->laws[i].ids, target_laws.After(with).ids);
      with.push_back(block->tokens[i]);
    }
    EXPECT_EQ(target.tokens, Ids(with.begin(), with.end() - 1));
    if (drafted != nullptr) *drafted += block->drafted;
    if (accepted != nullptr) *accepted += block->accepted;
    tokens = with;
  }
  tokens.resize(length);
  return tokens;
}

Ids Plain(const Tables& laws, uint64_t seed, size_t length) {
  Ids tokens;
  while (tokens.size() < length) {
    tokens.push_back(Draw(laws.After(tokens), seed,
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

// Counts of whole outputs against their exact probabilities: fails where the
// total variation is beyond what chance allows but once in a million.
void ExpectLaw(const Tables& laws, const std::map<Ids, int64_t>& counts,
               size_t length, int64_t samples) {
  std::map<Ids, double> exact = {{{}, 1.0}};
  for (size_t i = 0; i < length; ++i) {
    std::map<Ids, double> longer;
    for (const auto& [tokens, p] : exact) {
      const Law& law = laws.After(tokens);
      for (size_t k = 0; k < law.ids.size(); ++k) {
        Ids with = tokens;
        with.push_back(law.ids[k]);
        longer[with] = p * static_cast<double>(law.probabilities[k]);
      }
    }
    exact = longer;
  }
  const auto n = static_cast<double>(samples);
  double variation = 0;
  for (const auto& [tokens, p] : exact) {
    const auto found = counts.find(tokens);
    const double share =
        found == counts.end() ? 0 : static_cast<double>(found->second) / n;
    variation += std::abs(share - p) / 2;
  }
  for (const auto& [tokens, count] : counts) {
    EXPECT_TRUE(exact.count(tokens)) << testing::PrintToString(tokens);
  }
  const double bound = 0.5 * std::sqrt(static_cast<double>(exact.size()) / n) +
                       std::sqrt(std::log(1e6) / (2 * n));
  EXPECT_LT(variation, bound) << exact.size() << " outputs";
}

TEST(VerifyTest, ResidualTextHasTheTargetsLaw) {
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
    ExpectLaw(target, counts, kLength, kSamples);
  }
}

// Few outputs and many samples: noise that two decisions share shows here.
TEST(VerifyTest, EveryDecisionHasNoiseOfItsOwn) {
  constexpr int64_t kSamples = 60'000;
  constexpr size_t kLength = 2;
  for (uint32_t tables : {1u, 2u}) {
    const Tables target(3, 10 + tables);
    const Tables draft(3, 20 + tables);
    std::map<Ids, int64_t> counts;
    for (int64_t seed = 0; seed < kSamples; ++seed) {
      ++counts[Speculated(target, draft, static_cast<uint64_t>(seed),
                          VerifyMode::kResidual, 2, kLength)];
    }
    ExpectLaw(target, counts, kLength, kSamples);
  }
}

TEST(VerifyTest, AcceptanceIsTheCommonPart) {
  constexpr size_t kSamples = 20'000;
  const Tables target(kVocab, 5);
  const Tables draft(kVocab, 6);
  double common = 0;
  const Law& p = target.After({});
  const Law& q = draft.After({});
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

TEST(VerifyTest, EveryDrawHasAKeyOfItsOwn) {
  std::set<uint64_t> seeds;
  size_t keys = 0;
  for (uint64_t seed : {0, 1}) {
    for (uint32_t output : {0u, 1u}) {
      for (uint32_t level : {0u, 1u, 2u}) {
        for (int64_t outer : {5, 6}) {
          for (int64_t start : {5, 6, 7}) {
            for (Purpose purpose :
                 {Purpose::kDraft, Purpose::kAccept, Purpose::kReplace}) {
              seeds.insert(DrawKey{.seed = seed,
                                   .output = output,
                                   .level = level,
                                   .outer_start = outer,
                                   .start = start}
                               .SeedFor(purpose));
              ++keys;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(seeds.size(), keys);
}

TEST(VerifyTest, ErrorsChangeNothing) {
  const Tables laws(kVocab, 7);
  TableTarget target(laws);
  TableDrafter drafter(laws);
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
  EXPECT_EQ(target.tokens.size(), 3u);  // the draft is the target: all holds
}

}  // namespace
}  // namespace tiercel
