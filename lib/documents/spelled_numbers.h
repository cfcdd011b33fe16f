#ifndef TIERCEL_LIB_DOCUMENTS_SPELLED_NUMBERS_H_
#define TIERCEL_LIB_DOCUMENTS_SPELLED_NUMBERS_H_

#include <cstddef>
#include <string_view>

namespace tiercel::document {

struct SpelledNumber {
  int value = 0;  // 0: there is none
  size_t length = 0;
};

// Reads a number in words, below a thousand, at the beginning of a text in
// lower case: "one hundred and two", "einundzwanzigstes", "quatre-vingt-dix".
// A word that is an article too ("un") counts only if `with_articles`.
SpelledNumber ReadSpelled(std::u32string_view text, bool with_articles);

// Reads "last" in any language.
SpelledNumber ReadLast(std::u32string_view text);

// Reads a numeral of Greek or Hebrew letters with its sign: "ιβʹ", "י״ב". One
// without a sign is below forty.
SpelledNumber ReadLetters(std::u32string_view text);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_SPELLED_NUMBERS_H_
