#ifndef TIERCEL_MODELS_TOKENIZER_NFC_H_
#define TIERCEL_MODELS_TOKENIZER_NFC_H_

#include <string>
#include <string_view>

namespace tiercel {

// `text` in Unicode's Normalization Form C. Bytes that are not UTF-8 stay as
// they are; nothing composes across them. n log n in the longest run of
// combining marks.
std::string ComposeNfc(std::string_view text);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_NFC_H_
