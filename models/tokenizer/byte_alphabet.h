#ifndef TIERCEL_MODELS_TOKENIZER_BYTE_ALPHABET_H_
#define TIERCEL_MODELS_TOKENIZER_BYTE_ALPHABET_H_

#include <optional>
#include <string>
#include <string_view>

namespace tiercel {

// GPT-2's spelling of bytes as printable characters, in which byte-level
// vocabularies are written: the printable bytes of Latin-1 (0x21 to 0x7e, 0xa1
// to 0xac, 0xae to 0xff) stand for themselves, the other 68 are U+0100 onwards
// in ascending order. A space is U+0120 (G with a dot).

// Returns the bytes that `spelled` spells; nothing if it has a character
// outside the alphabet.
std::optional<std::string> BytesOfSpelling(std::string_view spelled);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_BYTE_ALPHABET_H_
