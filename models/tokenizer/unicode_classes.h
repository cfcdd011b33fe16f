#ifndef TIERCEL_MODELS_TOKENIZER_UNICODE_CLASSES_H_
#define TIERCEL_MODELS_TOKENIZER_UNICODE_CLASSES_H_

#include <cstdint>

namespace tiercel {

// The disjoint classes in the pre-tokenisers' patterns: \p{L}, \p{N}, \s
// (White_Space), and [^\s\p{L}\p{N}].
enum class CharClass : uint8_t { kOther, kLetter, kNumber, kSpace };

// Returns the class in Unicode 15.0. Code points that later versions assign are
// kOther; so is kNoCodePoint.
CharClass ClassOf(char32_t code_point);

}  // namespace tiercel

#endif  // TIERCEL_MODELS_TOKENIZER_UNICODE_CLASSES_H_
