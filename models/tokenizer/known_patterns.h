#ifndef TIERCEL_MODELS_TOKENIZER_KNOWN_PATTERNS_H_
#define TIERCEL_MODELS_TOKENIZER_KNOWN_PATTERNS_H_

#include <cstddef>
#include <string_view>

#include "models/tokenizer/regex.h"

namespace tiercel {

// The patterns of pre-tokenisers that have matchers written by hand, as
// tokenizer.json files spell them. All but the last match every character.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|)"
    R"( ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kNumberPattern = R"(\p{N})";

// Others that more than one reader knows: runs of marks, of punctuation and of
// ASCII's symbols; and three digits.
inline constexpr std::string_view kMarksPattern = R"([\p{P}\$\+<=>\^~\|`]+)";
inline constexpr std::string_view kThreeDigitsPattern = "[0-9][0-9][0-9]";

// Returns the first match in `text` that begins at `from` (< text.size()) or
// behind it; an empty one at the end if there is none. Time is linear in what
// is passed over.
using MatchFn = TextRange (*)(std::string_view text, size_t from);

// Returns the matcher of one of the first four patterns; null for any other.
MatchFn MatcherOf(std::string_view pattern);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_KNOWN_PATTERNS_H_
