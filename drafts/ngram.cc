#include "drafts/ngram.h"

#include <algorithm>

namespace tiercel {

// Searches from the end backwards for the longest match, the latest of equals.
// One pass over a whole book takes less than a millisecond.
absl::StatusOr<DraftBlock> NgramDrafter::Draft(
    const std::vector<int32_t>& tokens, int64_t most, const DrawKey& /*key*/) {
  const auto size = static_cast<int64_t>(tokens.size());
  const auto at = [&](int64_t i) { return tokens[static_cast<size_t>(i)]; };
  int64_t best_length = shortest_ - 1;
  int64_t best_end = -1;  // index of the token after the match
  for (int64_t end = size - 1; end > 0 && best_length < longest_; --end) {
    int64_t length = 0;
    while (length < longest_ && length < end &&
           at(end - 1 - length) == at(size - 1 - length)) {
      ++length;
    }
    if (length > best_length) {
      best_length = length;
      best_end = end;
    }
  }
  DraftBlock block;
  if (best_end < 0) return block;
  const int64_t count = std::min(most, size - best_end);
  for (int64_t i = best_end; i < best_end + count; ++i) {
    block.tokens.push_back(at(i));
    block.distributions.push_back({{at(i)}, {1.0f}});
  }
  return block;
}

}  // namespace tiercel
