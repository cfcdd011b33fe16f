#ifndef TIERCEL_LIB_TEMPLATE_LETTER_CASE_H_
#define TIERCEL_LIB_TEMPLATE_LETTER_CASE_H_

#include <cstddef>
#include <string_view>

#include "lib/template/value.h"

namespace tiercel::jinja {

// Python's mappings of case, and its classes of characters, by Unicode.

enum class Case {
  kUpper,
  kLower,
  kTitle,       // str.title: the first letter of each run of letters
  kTitleWords,  // Jinja's title: the first character behind space and brackets
  kCapital,     // str.capitalize
  kSwapped,     // str.swapcase
  kFolded,      // str.casefold
};
Value WithCase(Rendering& rendering, const Text& text, Case to);

// The class of the character that begins at `begin`.
struct CharacterClass {
  bool letter = false;
  bool decimal = false;
  bool digit = false;  // decimal, or a digit above or below the line
  bool numeric = false;
  bool upper = false;
  bool lower = false;
  bool title = false;
  bool printable = false;

  bool cased() const { return upper || lower || title; }
};
CharacterClass ClassAt(std::string_view text, size_t begin);

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_LETTER_CASE_H_
