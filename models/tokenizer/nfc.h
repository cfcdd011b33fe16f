#ifndef TIERCEL_MODELS_TOKENIZER_NFC_H_
#define TIERCEL_MODELS_TOKENIZER_NFC_H_

#include <string>
#include <string_view>

namespace tiercel {

// Returns `text` in Unicode's Normalization Form C. Bytes that are not UTF-8
// stay as they are, and nothing composes across them. It takes n log n time in
// the longest run of combining marks.
std::string ComposeNfc(std::string_view text);

// Returns whether NFC leaves the text as it is wherever it stands, and makes it
// of nothing else, unless a mark behind it composes with an ASCII character at
// its end.
bool IsFixedInNfc(std::string_view text);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_NFC_H_
