#include "models/tokenizer/special_matcher.h"

#include <algorithm>

namespace tiercel {

SpecialMatcher::SpecialMatcher(
    std::vector<std::pair<std::string, int32_t>> tokens)
    : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end());
  tokens_.erase(std::unique(tokens_.begin(), tokens_.end(),
                            [](const auto& a, const auto& b) {
                              return a.first == b.first;
                            }),
                tokens_.end());
  if (!tokens_.empty() && tokens_.front().first.empty()) {
    tokens_.erase(tokens_.begin());
  }
  for (const auto& [text, id] : tokens_) {
    first_bytes_.set(static_cast<uint8_t>(text[0]));
  }
}

std::optional<SpecialMatcher::Match> SpecialMatcher::Find(std::string_view text,
                                                          size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!first_bytes_.test(static_cast<uint8_t>(text[begin]))) continue;
    if (std::optional<Match> match = MatchAt(text, begin)) return match;
  }
  return std::nullopt;
}

// Tokens that agree with the text so far are neighbours in the sorted list, so
// each byte of the text narrows the range.
std::optional<SpecialMatcher::Match> SpecialMatcher::MatchAt(
    std::string_view text, size_t begin) const {
  std::optional<Match> longest;
  auto low = tokens_.begin();
  auto high = tokens_.end();
  for (size_t depth = 0; begin + depth < text.size(); ++depth) {
    const auto byte_of = [depth](const auto& token) {
      return static_cast<uint8_t>(token.first[depth]);
    };
    const uint8_t byte = static_cast<uint8_t>(text[begin + depth]);
    low = std::partition_point(
        low, high, [&](const auto& token) { return byte_of(token) < byte; });
    high = std::partition_point(
        low, high, [&](const auto& token) { return byte_of(token) == byte; });
    if (low == high) break;
    // The shortest comes first; past it every token has a byte at depth + 1.
    if (low->first.size() == depth + 1) {
      longest = Match{begin, begin + depth + 1, low->second};
      if (++low == high) break;
    }
  }
  return longest;
}

}  // namespace tiercel
