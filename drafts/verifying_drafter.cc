#include "drafts/verifying_drafter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "drafts/verdict.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The draft of a second choice, once a token of the first was drawn; empty:
// there is none. A greedy draft has no other token than the first, so the one
// that came second stands for it.
Distribution SecondDraft(const Distribution& first, int32_t token) {
  if (first.second != kNoToken) return {{first.second}, {1.0f}};
  return WithoutToken(first, token);
}

// The probability that a draft gives its token beside others.
double SurenessOf(const Distribution& draft, int32_t token) {
  return static_cast<double>(draft.second != kNoToken
                                 ? 1 - draft.second_share
                                 : ProbabilityOf(draft, token));
}

// The places of a block at which second choices are most likely to be needed,
// the last first: where the block is likely to hold so far, and its token may
// not be the target's.
std::vector<size_t> PlacesToBranch(const DraftBlock& block, int most) {
  // A draft that gives a token the probability q errs in about this share of
  // 1 - q.
  constexpr double kErrs = 0.25;
  std::vector<std::pair<double, size_t>> places;
  double reached = 1;
  for (size_t i = 0; i < block.tokens.size(); ++i) {
    const Distribution& draft = block.distributions[i];
    const double q = SurenessOf(draft, block.tokens[i]);
    if (draft.ids.size() > 1 || draft.second != kNoToken) {
      places.emplace_back(reached * (1 - q), i);
    }
    reached *= 1 - kErrs * (1 - q);
  }
  std::stable_sort(
      places.begin(), places.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  places.resize(std::min(places.size(), static_cast<size_t>(most)));
  std::vector<size_t> found;
  for (const auto& place : places) found.push_back(place.second);
  std::sort(found.rbegin(), found.rend());
  return found;
}

}  // namespace

absl::StatusOr<DraftBlock> VerifyingDrafter::Draft(
    const std::vector<int32_t>& tokens, int64_t most, const DrawKey& key) {
  RETURN_IF_ERROR(target_.Begin(tokens));
  std::vector<int32_t> sequence = tokens;
  DraftBlock block;
  RETURN_IF_ERROR(
      Extend(&sequence, most, key, &block.tokens, &block.distributions));
  RETURN_IF_ERROR(AddBranches(key, &block));
  return block;
}

absl::Status VerifyingDrafter::Extend(
    std::vector<int32_t>* sequence, int64_t most, const DrawKey& key,
    std::vector<int32_t>* tokens, std::vector<Distribution>* distributions) {
  while (std::ssize(*tokens) < most) {
    const int64_t size = std::ssize(*tokens);
    // A round adds the tokens that hold and one more, so never too many. Its
    // length is decided before any of it is drawn.
    const int64_t inner_most =
        options_.inner == nullptr
            ? 0
            : std::min(options_.gamma1.Next(), most - size - 1);
    ASSIGN_OR_RETURN(
        VerifiedBlock round,
        VerifyRound(*sequence, inner_most, options_.mode,
                    key.Within(key.start + size), options_.inner, target_));
    inner_level_.Count(round.drafted, round.accepted);
    options_.gamma1.Count(static_cast<int64_t>(round.drafted),
                          static_cast<int64_t>(round.accepted));
    if (round.tokens.empty()) break;
    sequence->insert(sequence->end(), round.tokens.begin(), round.tokens.end());
    tokens->insert(tokens->end(), round.tokens.begin(), round.tokens.end());
    std::move(round.distributions.begin(), round.distributions.end(),
              std::back_inserter(*distributions));
  }
  return absl::OkStatus();
}

// A branch is where it is, and as long as it is, by the block alone; its draws
// are used for nothing else.
absl::Status VerifyingDrafter::AddBranches(const DrawKey& key,
                                           DraftBlock* block) {
  // The target would draw these tokens itself, if it draws with the noise.
  const auto draw = [&](const Distribution& distribution, const DrawKey& own) {
    const bool coupled = options_.mode == VerifyMode::kCoupled;
    return Draw(distribution, coupled ? key.seed : own.SeedFor(Purpose::kDraft),
                own.start);
  };
  const auto branch_key = [&](const DraftBranch& branch) {
    return key.Branch(key.start + static_cast<int64_t>(branch.at));
  };
  std::vector<size_t> growing;
  for (const size_t at : PlacesToBranch(*block, options_.branches)) {
    Distribution others =
        SecondDraft(block->distributions[at], block->tokens[at]);
    if (others.ids.empty()) continue;
    growing.push_back(block->branches.size());
    DraftBranch& branch = block->branches.emplace_back();
    branch.at = at;
    branch.tokens = {draw(others, branch_key(branch))};
    branch.distributions.push_back(std::move(others));
  }
  while (true) {
    // It ends where the block does, at the latest.
    std::erase_if(growing, [&](size_t i) {
      const DraftBranch& branch = block->branches[i];
      return std::ssize(branch.tokens) ==
             std::min<int64_t>(
                 kBranchTokens,
                 std::ssize(block->tokens) - static_cast<int64_t>(branch.at));
    });
    if (growing.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::vector<Distribution> behind,
                     target_.BehindBranches(*block, growing));
    std::vector<size_t> grown;
    for (size_t i = 0; i < growing.size(); ++i) {
      if (behind[i].ids.empty()) continue;  // no token may follow
      DraftBranch& branch = block->branches[growing[i]];
      const DrawKey own = branch_key(branch);
      branch.tokens.push_back(
          draw(behind[i], own.Within(own.start + std::ssize(branch.tokens))));
      branch.distributions.push_back(std::move(behind[i]));
      grown.push_back(growing[i]);
    }
    growing = std::move(grown);
  }
}

std::vector<DraftLevel> VerifyingDrafter::inner_levels() const {
  if (options_.inner == nullptr) return {};
  std::vector<DraftLevel> levels = options_.inner->inner_levels();
  levels.push_back(inner_level_);
  levels.back().drafter = options_.inner->name();
  levels.back().cost_ratio = options_.gamma1.cost_ratio();
  return levels;
}

}  // namespace tiercel
