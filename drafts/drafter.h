#ifndef TIERCEL_DRAFTS_DRAFTER_H_
#define TIERCEL_DRAFTS_DRAFTER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/draw_key.h"
#include "kernels/token/distribution.h"

namespace tiercel {

// A second choice for one token of a block, and tokens that may follow it.
struct DraftBranch {
  size_t at = 0;  // the token of the block whose place its first one takes
  std::vector<int32_t> tokens;
  std::vector<Distribution> distributions;  // [tokens]
};

// Tokens that may follow, each with the distribution that it was drawn from.
// With branches it is a tree (SpecInfer, arXiv 2305.09781; SpecExec, arXiv
// 2406.02532): each place has one branch at most, and branches have none. The
// first token of a branch is drawn without replacement: from the distribution
// of the block's token, without that token.
struct DraftBlock {
  std::vector<int32_t> tokens;
  std::vector<Distribution> distributions;  // [tokens]
  std::vector<DraftBranch> branches = {};
};

// The number of a block's tokens that a check looks at: those that held, and
// the first that did not.
inline int64_t CheckedOf(int64_t drafted, int64_t accepted) {
  return std::min(drafted, accepted + 1);
}

// Counts of one drafter's proposals. Its acceptance, the chance that a token
// holds if all before it did, is accepted / checked.
struct DraftLevel {
  const char* drafter = "";
  int64_t drafted = 0;
  int64_t checked = 0;
  int64_t accepted = 0;
  int64_t branches = 0;         // branches that were drafted
  int64_t branch_accepted = 0;  // tokens that held in them
  int64_t ahead = 0;      // blocks that were drafted during the sweep before
  double cost_ratio = 0;  // for adaptive lengths; 0: they are fixed

  // Adds a block.
  void Count(size_t block_drafted, size_t block_accepted) {
    const auto held = static_cast<int64_t>(block_accepted);
    const auto all = static_cast<int64_t>(block_drafted);
    drafted += all;
    checked += CheckedOf(all, held);
    accepted += held;
  }
};

// Proposes tokens that may come next. Its state follows from the tokens that it
// is given: proposed tokens that did not hold are simply absent from the next
// call.
class Drafter {
 public:
  virtual ~Drafter() = default;

  virtual const char* name() const = 0;  // as --draft and the report name it

  // Proposes at most `most` (>= 1) tokens after `tokens`, the first of them at
  // `key`'s start; none if it has no proposal.
  virtual absl::StatusOr<DraftBlock> Draft(const std::vector<int32_t>& tokens,
                                           int64_t most,
                                           const DrawKey& key) = 0;

  // Counts of the drafters within this one since it was made, the innermost
  // first.
  virtual std::vector<DraftLevel> inner_levels() const { return {}; }
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_DRAFTER_H_
