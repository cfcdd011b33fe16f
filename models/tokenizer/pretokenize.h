#ifndef TIERCEL_MODELS_TOKENIZER_PRETOKENIZE_H_
#define TIERCEL_MODELS_TOKENIZER_PRETOKENIZE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/tokenizer/known_patterns.h"
#include "models/tokenizer/regex.h"

namespace tiercel {

// A step in which a byte-level vocabulary cuts text into pieces before it
// merges within each: the matches of a regular expression, as tokenizer.json
// files spell it, and the stretches between them.
struct Cut {
  std::string pattern;
  // The family drops the text between matches. None may come there.
  bool is_all = false;
};

// Cuts text in several steps, each of which cuts the pieces of the one before.
// Patterns that many families have are matched by hand, in time linear in the
// text; others by Oniguruma. A byte that is not UTF-8 counts as a symbol,
// [^\s\p{L}\p{N}].
class Pretokenizer {
 public:
  // Errors: unsupported_tokenizer, if a pattern is no regular expression.
  static absl::StatusOr<Pretokenizer> Make(const std::vector<Cut>& cuts);

  // A walk over the pieces of one text, which must outlive it.
  class Walk {
   public:
    Walk(const Pretokenizer& pretokenizer, std::string_view text);

    // Returns the end of the piece that begins at `begin` (< text.size()),
    // which is 0 or the end of the piece before. Errors: invalid_text, where a
    // family would drop text, or its pattern needs too long.
    absl::StatusOr<size_t> End(size_t begin);

   private:
    const Pretokenizer& of_;
    std::string clean_;  // the text, if it has bytes that are not UTF-8
    std::string_view text_;
    std::vector<TextRange> pieces_;    // the current one of each step
    std::optional<Regex::Room> room_;  // absent: no step needs it
  };

 private:
  struct Step {
    MatchFn by_hand;  // null: by `regex`
    std::optional<Regex> regex;
    bool is_all;
  };
  std::vector<Step> steps_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_PRETOKENIZE_H_
