#ifndef TIERCEL_DRAFTS_DRAFT_LENGTH_H_
#define TIERCEL_DRAFTS_DRAFT_LENGTH_H_

#include <cstdint>
#include <optional>

namespace tiercel {

// Chooses the number of tokens to draft before they are checked: a fixed one,
// or the cheapest by the acceptance so far. It depends on counts and one ratio
// of costs, never on clocks, so that the same tokens give the same lengths.
class DraftLength {
 public:
  static constexpr int64_t kMost = 63;
  // The ratio of costs of adaptive lengths for which nothing was measured.
  static constexpr double kUsualRatio = 8;

  // 1 <= tokens <= kMost
  static DraftLength Fixed(int64_t tokens) { return DraftLength(tokens, 0); }
  // `cost_ratio` (> 0) is the cost of a check, in drafted tokens. If a share
  // `a` of tokens is accepted, a block of n gives (1 - a^(n + 1)) / (1 - a)
  // tokens for a cost of n + cost_ratio (Leviathan et al. 2023, theorem 3.8;
  // TriForce, arXiv 2404.11912, section 4.3). Next() is the n with the most
  // tokens per cost. Absent: kUsualRatio, unless TakeRatio gives another.
  static DraftLength Adaptive(std::optional<double> cost_ratio = {}) {
    DraftLength length(0, cost_ratio.value_or(kUsualRatio));
    length.wants_ratio_ = !cost_ratio.has_value();
    return length;
  }

  bool adaptive() const { return fixed_ == 0; }
  // Returns true if it is adaptive and no ratio was given.
  bool wants_ratio() const { return wants_ratio_; }
  // Takes the ratio (> 0) that was measured, for a length that wants one.
  void TakeRatio(double cost_ratio) { cost_ratio_ = cost_ratio; }

  // The most tokens that Next may return.
  int64_t Most() const { return adaptive() ? kMost : fixed_; }
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
  bool wants_ratio_ = false;
  // Tokens that were checked and tokens that held, older ones with less weight.
  // They begin as a guess that a few blocks outweigh.
  double checked_ = 10;
  double held_ = 8;
};

}  // namespace tiercel

#endif  // TIERCEL_DRAFTS_DRAFT_LENGTH_H_
