#ifndef TIERCEL_MODELS_TOKENIZER_SPECIAL_MATCHER_H_
#define TIERCEL_MODELS_TOKENIZER_SPECIAL_MATCHER_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tiercel {

// Finds whole tokens in text: the leftmost, and the longest that begins there.
class SpecialMatcher {
 public:
  struct Match {
    size_t begin;
    size_t end;
    int32_t id;
  };

  SpecialMatcher() = default;
  // Texts with their ids. Empty texts match nothing; of equal texts the least
  // id counts.
  explicit SpecialMatcher(std::vector<std::pair<std::string, int32_t>> tokens);

  // Returns the first match in `text` from `from` on.
  std::optional<Match> Find(std::string_view text, size_t from) const;

 private:
  std::optional<Match> MatchAt(std::string_view text, size_t begin) const;

  std::vector<std::pair<std::string, int32_t>> tokens_;  // sorted by text
  std::bitset<256> first_bytes_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_SPECIAL_MATCHER_H_
