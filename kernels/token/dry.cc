#include "kernels/token/dry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace tiercel {
namespace {

// The penalty of a token that continues a repetition of `length` tokens.
float Penalty(const DryParams& params, size_t length) {
  double exponent =
      static_cast<double>(length) - static_cast<double>(params.allowed_length);
  // The logarithm of the greatest float, with llama.cpp's value.
  constexpr float kGreatestLog = 88.7228391f;
  if (params.base > 1.000001f) {
    exponent = std::min<double>(
        exponent, std::trunc(kGreatestLog / std::log(params.base)));
  }
  const double penalty = static_cast<double>(params.multiplier) *
                         std::pow(static_cast<double>(params.base), exponent);
  return static_cast<float>(
      std::min<double>(penalty, std::numeric_limits<float>::max()));
}

}  // namespace

void SequenceBreakers::Add(const std::vector<int32_t>& run) {
  std::vector<std::vector<int32_t>>& tails = tails_[run.front()];
  const std::vector<int32_t> tail(run.begin() + 1, run.end());
  if (std::find(tails.begin(), tails.end(), tail) == tails.end()) {
    tails.push_back(tail);
  }
}

bool SequenceBreakers::IsBreaker(int32_t id) const {
  const auto found = tails_.find(id);
  return found != tails_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [](const auto& tail) { return tail.empty(); });
}

size_t SequenceBreakers::AfterLast(std::span<const int32_t> text) const {
  for (size_t after = 0; after < text.size(); ++after) {
    const auto found = tails_.find(text[text.size() - 1 - after]);
    if (found == tails_.end()) continue;
    std::optional<size_t> longest;
    for (const std::vector<int32_t>& tail : found->second) {
      if (tail.size() <= after && tail.size() >= longest.value_or(0) &&
          std::equal(tail.begin(), tail.end(),
                     text.end() - static_cast<ptrdiff_t>(after))) {
        longest = tail.size();
      }
    }
    if (longest.has_value()) return after - *longest;
  }
  return text.size();
}

std::map<int32_t, float> DryPenalties(const DryParams& params,
                                      std::span<const int32_t> text) {
  std::map<int32_t, float> penalties;
  const size_t size = text.size();
  const auto allowed = static_cast<size_t>(params.allowed_length);
  const size_t most =
      params.breakers == nullptr ? size : params.breakers->AfterLast(text);
  if (size <= allowed || most < allowed) return penalties;
  // This is the Z-algorithm over the reversed text: the matches[i] tokens
  // before the last i equal those at the end. [left, right) is the match that
  // reaches furthest.
  const auto back = [text, size](size_t i) { return text[size - 1 - i]; };
  std::vector<size_t> matches(size);
  std::map<int32_t, size_t> longest;  // key: the token that followed
  size_t left = 0;
  size_t right = 0;
  for (size_t i = 1; i < size; ++i) {
    size_t match = i < right ? std::min(right - i, matches[i - left]) : 0;
    while (i + match < size && back(match) == back(i + match)) ++match;
    matches[i] = match;
    if (i + match > right) {
      left = i;
      right = i + match;
    }
    const size_t repeated = std::min(match, most);
    if (repeated < allowed) continue;
    size_t& length = longest[back(i - 1)];
    length = std::max(length, repeated);
  }
  for (const auto& [id, length] : longest) {
    if (params.breakers != nullptr && params.breakers->IsBreaker(id)) continue;
    penalties[id] = Penalty(params, length);
  }
  return penalties;
}

}  // namespace tiercel
