#ifndef TIERCEL_DRAFTS_VERIFY_H_
#define TIERCEL_DRAFTS_VERIFY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/drafter.h"

namespace tiercel {

// How drafted tokens are checked. Both are lossless.
enum class VerifyMode {
  kResidual,  // accept with min(1, P / q): the most that can be
  kCoupled,   // accept what the target draws itself, with the plain sampler's
              // noise: the text is the plain sampler's, token for token
};

// Whose law is promised.
class Target {
 public:
  virtual ~Target() = default;

  // One pass over a block that may follow the sequence: laws[i] is that of the
  // token after i tokens of `block`, [block.size() + 1].
  virtual absl::StatusOr<std::vector<Law>> Laws(
      const std::vector<int32_t>& block) = 0;
  // The first `count` tokens of that block hold, `next` follows, and both are
  // the sequence's from now on; of the others no trace is left.
  virtual absl::Status Keep(size_t count, int32_t next) = 0;
};

// What a round adds: the drafted tokens that held and the one that follows,
// each with the target's law.
struct VerifiedBlock {
  std::vector<int32_t> tokens;
  std::vector<Law> laws;
  size_t drafted = 0;
  size_t accepted = 0;
};

// The one round, at every level: draft, check in one pass, replace, roll back.
// `tokens` is the sequence; `most` bounds the draft, and where it is 0 no
// drafter is asked (it may be null). Errors: those of the drafter and of the
// target.
absl::StatusOr<VerifiedBlock> VerifyRound(const std::vector<int32_t>& tokens,
                                          int64_t most, VerifyMode mode,
                                          const DrawKey& key, Drafter* drafter,
                                          Target& target);

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_VERIFY_H_
