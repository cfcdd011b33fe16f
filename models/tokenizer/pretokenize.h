#ifndef TIERCEL_MODELS_TOKENIZER_PRETOKENIZE_H_
#define TIERCEL_MODELS_TOKENIZER_PRETOKENIZE_H_

#include <cstddef>
#include <string_view>

namespace tiercel {

// The way in which a byte-level vocabulary cuts text into pieces before it
// merges within each. Every kind is a hand-written matcher, linear in the text,
// that finds the matches of the leftmost-first regular expression Pattern(). A
// byte that is not UTF-8 counts as a symbol, [^\s\p{L}\p{N}].
enum class Pretokenizer {
  kGpt2,
  kLlama3,
  kQwen2,
  kSmollm,  // every \p{N} alone, then kGpt2 on each stretch between them
};

// The name of the kind in GGUF.
std::string_view NameOf(Pretokenizer kind);

// Returns the regular expression, as tokenizer.json files spell it.
std::string_view Pattern(Pretokenizer kind);

// Returns the end of the piece of `text` that begins at `begin` (<
// text.size()), which is 0 or the end of the piece before.
size_t PieceEnd(Pretokenizer kind, std::string_view text, size_t begin);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_PRETOKENIZE_H_
