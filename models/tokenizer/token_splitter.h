#ifndef TIERCEL_MODELS_TOKENIZER_TOKEN_SPLITTER_H_
#define TIERCEL_MODELS_TOKENIZER_TOKEN_SPLITTER_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/tokenizer/special_matcher.h"
#include "models/tokenizer/tokenizer_spec.h"

namespace tiercel {

// A stretch of text, or a token that was found in it.
struct Stretch {
  std::string_view text;
  bool parses = false;  // a text in which control tokens are looked for, too
  std::optional<int32_t> token = std::nullopt;
};

// Finds the tokens that are matched as a whole before a text is encoded, as the
// library `tokenizers` does: first those that are looked for in the text as it
// is, then, in what they leave, those of the normalised text. A token takes the
// spaces beside it that it strips before the others are looked for.
class TokenSplitter {
 public:
  TokenSplitter() = default;
  explicit TokenSplitter(const TokenizerSpec& spec);

  // Splits texts at the tokens in each of them. Texts that follow each other
  // are one text, whose spaces a token strips across their bounds. No text of
  // the result is empty. `spec` is the one that this was made of.
  std::vector<Stretch> Split(const TokenizerSpec& spec,
                             const std::vector<Stretch>& texts) const;

  // The token whose text this is.
  std::optional<int32_t> TokenOf(std::string_view text) const;

 private:
  // The tokens of a pass.
  struct Pass {
    SpecialMatcher user_defined;
    SpecialMatcher special;  // user-defined and control
    bool any = false;
  };
  static std::vector<Stretch> SplitBy(const Pass& pass,
                                      const TokenizerSpec& spec,
                                      const std::vector<Stretch>& texts);

  Pass as_it_is_;
  Pass normalized_;
};

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_TOKEN_SPLITTER_H_
