#ifndef TIERCEL_DRAFTS_DRAFT_LENGTH_H_
#define TIERCEL_DRAFTS_DRAFT_LENGTH_H_

#include <cstdint>

namespace tiercel {

// Chooses the number of tokens to draft before they are checked: a fixed one,
// or the cheapest by the acceptance so far. It depends on counts and one ratio
// of costs, never on clocks, so that the same tokens give the same lengths.
class DraftLength {
 public:
  static constexpr int64_t kMost = 63;

  // 1 <= tokens <= kMost
  static DraftLength Fixed(int64_t tokens) { return DraftLength(tokens, 0); }
  // `cost_ratio` (> 0) is the cost of a check, in drafted tokens. If a share
  // `a` of tokens is accepted, a block of n gives (1 - a^(n + 1)) / (1 - a)
  // tokens for a cost of n + cost_ratio (Leviathan et al. 2023, theorem 3.8;
  // TriForce, arXiv 2404.11912, section 4.3). Next() is the n with the most
  // tokens per cost.
  static DraftLength Adaptive(double cost_ratio) {
    return DraftLength(0, cost_ratio);
  }

  int64_t Next() const;
  // Counts the outcome of the last block. Tokens after the first that did not
  // hold are not counted as checked.
  void Count(int64_t drafted, int64_t accepted);

  double cost_ratio() const { return cost_ratio_; }  // 0: fixed

 private:
  DraftLength(int64_t fixed, double cost_ratio)
      : fixed_(fixed), cost_ratio_(cost_ratio) {}

  int64_t fixed_;  // 0: adaptive
  double cost_ratio_;
  // Tokens that were checked and tokens that held, older ones with less weight.
  // They begin as a guess that a few blocks outweigh.
  double checked_ = 10;
  double held_ = 8;
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_DRAFT_LENGTH_H_
