#ifndef TIERCEL_DRAFTS_TABLES_FOR_TEST_H_
#define TIERCEL_DRAFTS_TABLES_FOR_TEST_H_

// Models for tests whose distribution depends on the last token alone, with
// drafters and targets over them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "drafts/drafter.h"
#include "drafts/verifying_drafter.h"
#include "kernels/token/distribution.h"
#include "lib/status/error.h"

namespace tiercel {

using Ids = std::vector<int32_t>;

// Distributions by the last token, of a few tokens each.
class Tables {
 public:
  Tables(int vocab, uint32_t seed) {
    std::mt19937 random(seed);
    for (int row = 0; row <= vocab; ++row) {
      Distribution distribution;
      float total = 0;
      for (int32_t id = 0; id < vocab; ++id) {
        const auto weight = static_cast<float>(random() % 4);
        if (weight == 0.0f) continue;  // as a sampler cuts it off
        distribution.ids.push_back(id);
        distribution.probabilities.push_back(weight);
        total += weight;
      }
      if (distribution.ids.empty()) {
        distribution = {{row % vocab}, {1.0f}};
        total = 1;
      }
      for (float& p : distribution.probabilities) p /= total;
      rows_.push_back(distribution);
    }
  }
  // Lets no token follow `id`, as a mask may.
  void EndBehind(int32_t id) { Set(id, {}); }
  void Set(int32_t id, Distribution after) {
    rows_[static_cast<size_t>(id)] = std::move(after);
  }
  const Distribution& After(const Ids& tokens) const {
    return tokens.empty() ? rows_.back()
                          : rows_[static_cast<size_t>(tokens.back())];
  }

 private:
  std::vector<Distribution> rows_;
};

class TableDrafter final : public Drafter {
 public:
  explicit TableDrafter(const Tables& distributions)
      : distributions_(distributions) {}
  const char* name() const override { return "table"; }
  absl::StatusOr<DraftBlock> Draft(const Ids& tokens, int64_t most,
                                   const DrawKey& key) override {
    if (fails) return InternalError("internal", "no draft");
    DraftBlock block;
    Ids all = tokens;
    for (int64_t i = 0; i < most; ++i) {
      if (distributions_.After(all).ids.empty()) break;
      block.distributions.push_back(distributions_.After(all));
      block.tokens.push_back(Draw(
          block.distributions.back(),
          coupled ? key.seed : key.SeedFor(Purpose::kDraft), key.start + i));
      all.push_back(block.tokens.back());
    }
    return block;
  }
  bool fails = false;
  bool coupled = false;

 private:
  const Tables& distributions_;
};

class TableTarget final : public DraftTarget {
 public:
  explicit TableTarget(const Tables& distributions)
      : distributions_(distributions) {}
  absl::Status Begin(const Ids& sequence) override {
    tokens = sequence;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Distribution>> Distributions(
      const Ids& block) override {
    if (fails) return InternalError("internal", "no distributions");
    pending_ = block;
    std::vector<Distribution> distributions;
    Ids all = tokens;
    distributions.push_back(distributions_.After(all));
    for (int32_t id : block) {
      all.push_back(id);
      distributions.push_back(distributions_.After(all));
    }
    return distributions;
  }
  absl::StatusOr<TreeDistributions> OfTree(const DraftBlock& block) override {
    ASSIGN_OR_RETURN(std::vector<Distribution> all,
                     Distributions(block.tokens));
    TreeDistributions tree = {std::move(all), {}};
    for (const DraftBranch& branch : block.branches) {
      std::vector<Distribution>& own = tree.branches.emplace_back();
      for (const int32_t id : branch.tokens) {
        own.push_back(distributions_.After({id}));
      }
    }
    return tree;
  }
  absl::StatusOr<std::vector<Distribution>> BehindBranches(
      const DraftBlock& block, absl::Span<const size_t> growing) override {
    if (fails) return InternalError("internal", "no distributions");
    std::vector<Distribution> behind;
    for (const size_t i : growing) {
      behind.push_back(distributions_.After(block.branches[i].tokens));
    }
    ++branch_passes;
    return behind;
  }
  absl::Status Keep(size_t count, absl::Span<const int32_t> next) override {
    if (next.empty()) return InternalError("internal", "no token follows");
    tokens.insert(tokens.end(), pending_.begin(),
                  pending_.begin() + static_cast<std::ptrdiff_t>(count));
    tokens.insert(tokens.end(), next.begin(), next.end());
    return absl::OkStatus();
  }
  Ids tokens;
  bool fails = false;
  int64_t branch_passes = 0;

 private:
  const Tables& distributions_;
  Ids pending_;
};

// The distribution of all outputs of `length` tokens.
inline std::map<Ids, double> OutputDistribution(const Tables& distributions,
                                                size_t length) {
  std::map<Ids, double> exact = {{{}, 1.0}};
  for (size_t i = 0; i < length; ++i) {
    std::map<Ids, double> longer;
    for (const auto& [tokens, p] : exact) {
      const Distribution& distribution = distributions.After(tokens);
      for (size_t k = 0; k < distribution.ids.size(); ++k) {
        Ids with = tokens;
        with.push_back(distribution.ids[k]);
        longer[with] = p * static_cast<double>(distribution.probabilities[k]);
      }
    }
    exact = longer;
  }
  return exact;
}

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_TABLES_FOR_TEST_H_
