#ifndef TIERCEL_DRAFTS_VERIFY_H_
#define TIERCEL_DRAFTS_VERIFY_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drafts/drafter.h"
#include "lib/status/status_macros.h"

namespace tiercel {

// The ways to check drafted tokens. Both are lossless.
enum class VerifyMode {
  kResidual,  // accept with min(1, P / q): the highest possible rate
  kCoupled,   // accept what the target draws itself, with the plain sampler's
              // noise: the text is the plain sampler's, token for token
};

// The model whose distribution the output must have.
class Target {
 public:
  virtual ~Target() = default;

  // Runs one pass over a block that may follow the sequence. Returns
  // block.size() + 1 distributions: number i is that of the token after i
  // tokens of `block`.
  virtual absl::StatusOr<std::vector<Distribution>> Distributions(
      const std::vector<int32_t>& block) = 0;
  // The distributions of a block with branches, which one pass checks.
  struct TreeDistributions {
    std::vector<Distribution> block;  // as Distributions returns them
    // [branch][its tokens]: number i is that of the token after i + 1 tokens of
    // the branch. Empty: the target did not look at this branch.
    std::vector<std::vector<Distribution>> branches;
  };
  virtual absl::StatusOr<TreeDistributions> OfTree(const DraftBlock& block) {
    ASSIGN_OR_RETURN(std::vector<Distribution> distributions,
                     Distributions(block.tokens));
    return TreeDistributions{std::move(distributions), {}};
  }
  // Appends the first `count` tokens of that block and `next`, one token or
  // more, to the sequence, and removes every trace of the others.
  virtual absl::Status Keep(size_t count, absl::Span<const int32_t> next) = 0;
};

// The tokens that a round adds: the drafted tokens that held and the one that
// follows, each with the target's distribution. If none may follow, the last
// one is one that held; without any there are no tokens.
struct VerifiedBlock {
  std::vector<int32_t> tokens;
  std::vector<Distribution> distributions;
  size_t drafted = 0;   // without branches
  size_t accepted = 0;  // likewise
  size_t branches = 0;
  size_t branch_accepted = 0;
};

// The one round that every level uses: draft, check in one pass, replace, roll
// back. `tokens` is the sequence. `most` bounds the draft; if it is 0 no
// drafter is called, and `drafter` may be null. If it adds no tokens the target
// keeps nothing. Errors: those of the drafter and of the target.
absl::StatusOr<VerifiedBlock> VerifyRound(const std::vector<int32_t>& tokens,
                                          int64_t most, VerifyMode mode,
                                          const DrawKey& key, Drafter* drafter,
                                          Target& target);

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_VERIFY_H_
