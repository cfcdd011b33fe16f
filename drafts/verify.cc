#include "drafts/verify.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "drafts/verdict.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// Noise that follows from the key and the position alone.
class Noise {
 public:
  Noise(VerifyMode mode, const DrawKey& key)
      : start_(key.start),
        accept_(key.SeedFor(Purpose::kAccept)),
        accept_branch_(key.SeedFor(Purpose::kAcceptBranch)),
        draw_(mode == VerifyMode::kCoupled ? key.seed
                                           : key.SeedFor(Purpose::kReplace)) {}

  bool Accept(float probability, size_t i) const {
    return Accept(probability, i, accept_);
  }
  bool AcceptBranch(float probability, size_t i) const {
    return Accept(probability, i, accept_branch_);
  }
  int32_t Draw(const Distribution& distribution, size_t i) const {
    return tiercel::Draw(distribution, draw_, Position(i));
  }

 private:
  bool Accept(float probability, size_t i, uint64_t seed) const {
    const auto at = static_cast<uint64_t>(Position(i));
    const auto words = Philox(
        {static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0},
        seed);
    // A probability of 0 never accepts, one of 1 always does.
    return OpenUniform(words[0]) < static_cast<double>(probability);
  }
  int64_t Position(size_t i) const { return start_ + static_cast<int64_t>(i); }

  const int64_t start_;
  const uint64_t accept_;
  const uint64_t accept_branch_;
  const uint64_t draw_;
};

}  // namespace

absl::StatusOr<VerifiedBlock> VerifyRound(const std::vector<int32_t>& tokens,
                                          int64_t most, VerifyMode mode,
                                          const DrawKey& key, Drafter* drafter,
                                          Target& target) {
  DraftBlock draft;
  if (most > 0) {
    ASSIGN_OR_RETURN(draft, drafter->Draft(tokens, most, key));
  }
  ASSIGN_OR_RETURN(Target::TreeDistributions targets, target.OfTree(draft));
  const Chain<Distribution> chain = {draft.tokens, draft.distributions,
                                     targets.block};
  std::vector<Branch<Distribution>> branches;
  std::vector<size_t> whose;  // the draft's index of each
  for (size_t i = 0; i < targets.branches.size(); ++i) {
    if (targets.branches[i].empty()) continue;
    const DraftBranch& own = draft.branches[i];
    branches.push_back(
        {own.at, {own.tokens, own.distributions, targets.branches[i]}});
    whose.push_back(i);
  }
  Noise noise(mode, key);
  const Verdict verdict = mode == VerifyMode::kCoupled
                              ? JudgeCoupled(chain, branches, noise)
                              : JudgeResidual(chain, branches, noise);

  VerifiedBlock block;
  block.drafted = draft.tokens.size();
  block.accepted = verdict.accepted;
  block.branches = branches.size();
  block.branch_accepted = verdict.of_branch;
  block.tokens = std::move(draft.tokens);
  block.tokens.resize(verdict.accepted);
  block.distributions = std::move(targets.block);
  if (verdict.branch >= 0) {
    const size_t index = whose[static_cast<size_t>(verdict.branch)];
    const auto held = static_cast<std::ptrdiff_t>(verdict.of_branch);
    const std::vector<int32_t>& own = draft.branches[index].tokens;
    block.tokens.insert(block.tokens.end(), own.begin(), own.begin() + held);
    auto& behind = targets.branches[index];
    block.distributions.resize(verdict.accepted + 1);
    std::move(behind.begin(), behind.begin() + held,
              std::back_inserter(block.distributions));
  }
  if (verdict.next != kNoToken) block.tokens.push_back(verdict.next);
  block.distributions.resize(block.tokens.size());
  if (block.tokens.empty()) return block;
  const size_t held = std::min(verdict.accepted, block.tokens.size() - 1);
  RETURN_IF_ERROR(
      target.Keep(held, absl::MakeConstSpan(block.tokens).subspan(held)));
  return block;
}

}  // namespace tiercel
