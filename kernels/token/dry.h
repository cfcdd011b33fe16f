#ifndef TIERCEL_KERNELS_TOKEN_DRY_H_
#define TIERCEL_KERNELS_TOKEN_DRY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace tiercel {

// Runs of tokens that end a repetition, such as names in a dialogue or list
// marks, which recur in any text.
class SequenceBreakers {
 public:
  void Add(const std::vector<int32_t>& run);  // at least one token

  // Returns true if `id` by itself is such a run.
  bool IsBreaker(int32_t id) const;
  // The number of tokens after the last run in `text`; all of them if there is
  // no run. Of runs that begin with the same token the longest counts.
  size_t AfterLast(std::span<const int32_t> text) const;

  bool operator==(const SequenceBreakers&) const = default;

 private:
  // The tokens after the first token of each run; the key is the first token.
  std::map<int32_t, std::vector<std::vector<int32_t>>> tails_;
};

// DRY, "don't repeat yourself": the formula of llama.cpp's sampler of that
// name, over the tokens of one text. If the last n tokens also occur earlier,
// the token that followed them there would make the repetition longer, and its
// logit is reduced by
//
//   multiplier * base^(n - allowed_length), if n >= allowed_length,
//
// with the greatest n for that token. A repetition goes back to the last
// breaker at most, and a token that is a breaker is not penalised.
struct DryParams {
  float multiplier = 0.0f;  // 0: off
  float base = 1.75f;
  int allowed_length = 2;  // tokens; 1 or more
  std::shared_ptr<const SequenceBreakers> breakers = nullptr;  // null: none
};

// The penalties on the logits of tokens after `text`; tokens that are not in
// the map have none. The power is limited to the greatest that fits a float, so
// that penalties are finite.
std::map<int32_t, float> DryPenalties(const DryParams& params,
                                      std::span<const int32_t> text);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_DRY_H_
