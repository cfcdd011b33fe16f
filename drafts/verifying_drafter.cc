#include "drafts/verifying_drafter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<DraftBlock> VerifyingDrafter::Draft(
    const std::vector<int32_t>& tokens, int64_t most, const DrawKey& key) {
  RETURN_IF_ERROR(target_.Begin(tokens));
  std::vector<int32_t> sequence = tokens;
  DraftBlock block;
  while (std::ssize(block.tokens) < most) {
    const int64_t size = std::ssize(block.tokens);
    // A round adds the tokens that hold and one more, so never too many. Its
    // length is decided before any of it is drawn.
    const int64_t inner_most =
        options_.inner == nullptr
            ? 0
            : std::min(options_.gamma1.Next(), most - size - 1);
    ASSIGN_OR_RETURN(
        VerifiedBlock round,
        VerifyRound(sequence, inner_most, options_.mode,
                    key.Within(key.start + size), options_.inner, target_));
    inner_level_.Count(round.drafted, round.accepted);
    options_.gamma1.Count(static_cast<int64_t>(round.drafted),
                          static_cast<int64_t>(round.accepted));
    sequence.insert(sequence.end(), round.tokens.begin(), round.tokens.end());
    block.tokens.insert(block.tokens.end(), round.tokens.begin(),
                        round.tokens.end());
    std::move(round.distributions.begin(), round.distributions.end(),
              std::back_inserter(block.distributions));
  }
  return block;
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
