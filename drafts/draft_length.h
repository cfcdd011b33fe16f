#ifndef TIERCEL_DRAFTS_DRAFT_LENGTH_H_
#define TIERCEL_DRAFTS_DRAFT_LENGTH_H_

#include <cstdint>

namespace tiercel {

// How many tokens to draft before they are checked: always the same, or what
// the acceptance so far makes cheapest. Decided by counts and one ratio of
// costs, never by clocks, so that the same tokens give the same lengths.
class DraftLength {
 public:
  static constexpr int64_t kMost = 63;

  // 1 <= tokens <= kMost
  static DraftLength Fixed(int64_t tokens) { return DraftLength(tokens, 0); }
  // `cost_ratio` (> 0): what a check costs, in drafted tokens. With a share `a`
  // of tokens accepted a block of n gives (1 - a^(n + 1)) / (1 - a) tokens for
  // a cost of n + cost_ratio (Leviathan et al. 2023, theorem 3.8; TriForce,
  // arXiv 2404.11912, section 4.3): the n with the most tokens for their cost.
  static DraftLength Adaptive(double cost_ratio) {
    return DraftLength(0, cost_ratio);
  }

  int64_t Next() const;
  // What came of the last block. Tokens after the first that did not hold tell
  // nothing.
  void Count(int64_t drafted, int64_t accepted);

  double cost_ratio() const { return cost_ratio_; }  // 0: fixed

 private:
  DraftLength(int64_t fixed, double cost_ratio)
      : fixed_(fixed), cost_ratio_(cost_ratio) {}

  int64_t fixed_;  // 0: adaptive
  double cost_ratio_;
  // Tokens that were checked and those that held, the older the less; at first
  // a guess that a few blocks outweigh.
  double checked_ = 10;
  double held_ = 8;
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_DRAFT_LENGTH_H_
