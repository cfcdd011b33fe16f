#ifndef TIERCEL_LIB_TEXT_UTF8_H_
#define TIERCEL_LIB_TEXT_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace tiercel {

// Stands for a byte that is not part of a well-formed sequence.
inline constexpr char32_t kNoCodePoint = 0xffffffff;

struct Utf8Char {
  char32_t code_point;  // kNoCodePoint for a stray byte, and at the end
  size_t bytes;         // 1 to 4; 1 for a stray byte; 0 at the end
};

// Returns the character of `text` at `begin` (<= text.size()). RFC 3629:
// shortest form only, no surrogates, at most U+10FFFF. Any other byte counts as
// a stray byte, so that every byte of every text belongs to exactly one
// Utf8Char.
Utf8Char Utf8At(std::string_view text, size_t begin);

// `code_point` must be a Unicode scalar value.
void AppendUtf8(char32_t code_point, std::string* text);

// Returns the number of bytes at the end of `text` that begin a sequence which
// more bytes could complete: 0 to 3.
inline constexpr size_t kMostUnfinishedBytes = 3;
size_t UnfinishedUtf8(std::string_view text);

// Returns `text` with U+FFFD in place of bytes that are not UTF-8: one for each
// maximal prefix of a sequence, as the Unicode standard recommends (3.9, U+FFFD
// Substitution of Maximal Subparts), and one for every other stray byte.
std::string ReplaceInvalidUtf8(std::string_view text);

}  // namespace tiercel

#endif  // TIERCEL_LIB_TEXT_UTF8_H_
