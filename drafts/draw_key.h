#ifndef TIERCEL_DRAFTS_DRAW_KEY_H_
#define TIERCEL_DRAFTS_DRAW_KEY_H_

#include <cstdint>

#include "kernels/number/philox.h"

namespace tiercel {

// The use of a draw.
enum class Purpose : uint32_t {
  kDraft = 1,
  kAccept = 2,
  kReplace = 3,
  kNested = 4,  // all draws of the nested blocks
  kBranch = 5,  // ... and of a block's branches
  kAcceptBranch = 6,
};

// The source of randomness where drafted tokens are judged by their
// probabilities. A draw that influenced a decision is never used again: a tail
// that is drafted once more gets fresh draws, however long its block is. Keys
// follow from committed state alone, so replays are exact.
struct DrawKey {
  uint64_t seed = 0;
  uint32_t output = 0;     // index of the output within its request
  uint64_t enclosing = 0;  // stands for the keys of all enclosing blocks
  int64_t start = 0;       // position at which the block begins

  // The seed of the draws for `purpose`. The noise follows from it, a position
  // and a token.
  uint64_t SeedFor(Purpose purpose) const {
    // The last word is 0 for the plain sampler.
    const auto words =
        Philox({static_cast<uint32_t>(start), static_cast<uint32_t>(enclosing),
                static_cast<uint32_t>(enclosing >> 32),
                (output << 8 | static_cast<uint32_t>(purpose)) + 1},
               seed);
    return words[0] | uint64_t{words[1]} << 32;
  }

  // The key of a block that is drafted within this one, from `position` on.
  DrawKey Within(int64_t position) const {
    return {.seed = seed,
            .output = output,
            .enclosing = SeedFor(Purpose::kNested),
            .start = position};
  }
  // The key of a branch of this block that begins at `position`.
  DrawKey Branch(int64_t position) const {
    return {.seed = seed,
            .output = output,
            .enclosing = SeedFor(Purpose::kBranch),
            .start = position};
  }
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_DRAW_KEY_H_
