#ifndef TIERCEL_KERNELS_TOKEN_DRY_H_
#define TIERCEL_KERNELS_TOKEN_DRY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace tiercel {

// Runs of tokens that end a repetition: the names in a dialogue, the marks of a
// list, and their like come again in any text.
class SequenceBreakers {
 public:
  void Add(const std::vector<int32_t>& run);  // one token at least

  // Whether `id` is such a run by itself.
  bool IsBreaker(int32_t id) const;
  // How many tokens follow the last run in `text`; all of them where there is
  // none. Of runs that begin with the same token the longest counts.
  size_t AfterLast(std::span<const int32_t> text) const;

  bool operator==(const SequenceBreakers&) const = default;

 private:
  // By the first token of a run, the tokens behind it.
  std::map<int32_t, std::vector<std::vector<int32_t>>> tails_;
};

// DRY, "don't repeat yourself": the formula of llama.cpp's sampler of that
// name, over the tokens of one text. Where the last n of them stand earlier in
// it, what followed them there would make the repetition longer, and its logit
// loses
//
//   multiplier * base^(n - allowed_length), if n >= allowed_length,
//
// n being the greatest for that token. A repetition goes back to the last
// breaker at most, and a token that is one loses nothing.
struct DryParams {
  float multiplier = 0.0f;  // 0: off
  float base = 1.75f;
  int allowed_length = 2;  // tokens; 1 or more
  std::shared_ptr<const SequenceBreakers> breakers = nullptr;  // null: none
};

// What each token's logit loses where it would follow `text`; others lose
// nothing. Finite: the power is at most the greatest below what a float holds.
std::map<int32_t, float> DryPenalties(const DryParams& params,
                                      std::span<const int32_t> text);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_TOKEN_DRY_H_
