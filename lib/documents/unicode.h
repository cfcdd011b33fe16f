#ifndef TIERCEL_LIB_DOCUMENTS_UNICODE_H_
#define TIERCEL_LIB_DOCUMENTS_UNICODE_H_

#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// Returns the character of valid UTF-8 at `at`, and sets `next` to the start of
// the next one. 0 at the end; U+FFFD for a byte that begins no character.
char32_t CharacterAt(std::string_view text, size_t at, size_t* next);
// Returns the character that ends before `at`; 0 at the beginning.
char32_t CharacterBefore(std::string_view text, size_t at);

std::u32string ToUtf32(std::string_view text);
std::string FromUtf32(std::u32string_view text);

// Returns the same for texts that differ in case alone, or in the composition
// of accents (NFC, NFD).
std::string CaseFolded(const std::string& text);

// Returns a text whose letters and accents are one character each (NFC).
std::string Composed(const std::string& text);

char32_t LowerCase(char32_t character);
// Returns a letter of Latin, Greek or Cyrillic without its accents, and "œ" as
// "oe"; others as they are.
std::u32string WithoutAccents(char32_t character);
// Returns the characters that stand for one where texts are compared: a letter
// and its accents apart, the letters of a ligature, three dots for an ellipsis,
// U+0020 for any space, "-" for any dash; none for one that does not show, such
// as a soft hyphen.
std::u32string Decomposed(char32_t character);
bool IsLetter(char32_t character);
// Returns true for accents and vowel signs that stand with the letter before.
bool IsMark(char32_t character);
bool IsUpperCase(char32_t character);
bool IsLowerCase(char32_t character);
bool IsDigit(char32_t character);
// Returns true for Chinese and Japanese characters, between which words have no
// spaces.
bool IsIdeographic(char32_t character);
// Returns true for letters of Hebrew, Arabic and the like.
bool IsRightToLeft(char32_t character);
// Replaces the forms that Arabic letters take in print by the letters.
std::u32string WithoutPresentationForms(std::u32string_view text);
// Returns the terminal columns that `text` takes: two for each wide character.
int ColumnsOf(std::string_view text);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_UNICODE_H_
