#ifndef TIERCEL_APPS_DOCUMENT_ENCODING_H_
#define TIERCEL_APPS_DOCUMENT_ENCODING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// Charsets have the names that iconv knows: "UTF-8", "KOI8-R". "" is none.

// What a byte order mark says (that of UTF-32 before that of UTF-16, with which
// it may begin), and how many bytes the mark takes.
struct ByteOrderMark {
  std::string_view charset;  // UTF-8, UTF-16LE, UTF-16BE, UTF-32LE, UTF-32BE
  size_t bytes;
};
ByteOrderMark FindByteOrderMark(std::string_view bytes);

// The charset of a label in a page, as browsers read it: "latin1" and
// "us-ascii" are WINDOWS-1252 too, "gb2312" is GB18030. "" for labels that
// iconv does not know.
std::string CharsetOfLabel(std::string_view label);

// The charset that a <meta> in the first 1024 bytes or an XML declaration
// names, in lower case; empty where there is none.
std::string DeclaredCharset(std::string_view bytes);

// What bytes without a declared charset are in: UTF-8 if they are valid, else
// what uchardet takes them for, else WINDOWS-1252.
std::string GuessCharset(std::string_view bytes);

bool IsUtf8(std::string_view bytes);

// `bytes`, each that belongs to no valid character replaced by U+FFFD.
std::string ValidUtf8(std::string_view bytes);

// `bytes` (without a mark) as UTF-8. What is invalid in `charset` becomes
// U+FFFD and is told in `warnings`; where `charset` is "" it is guessed, and
// told unless it is UTF-8.
std::string ToUtf8(std::string_view bytes, std::string_view charset,
                   std::vector<std::string>* warnings);

// A whole file as UTF-8: a text in the charset of its byte order mark, or a
// page in that, else in the one it declares. Whatever they declare, bytes that
// are UTF-8 are read as that. A charset that nobody knows is guessed, and told.
std::string DecodeText(std::string_view bytes,
                       std::vector<std::string>* warnings);
std::string DecodePage(std::string_view bytes,
                       std::vector<std::string>* warnings);

// Control characters that no reader shows (U+0000 to U+001F and U+007F, but not
// tab, line feed, vertical tab, form feed, carriage return).
bool IsControl(char c);

// Control characters become spaces: many a vocabulary cannot spell them, and a
// terminal obeys some. Returns how many.
size_t ReplaceControls(std::string* text);

// CRLF and CR become LF.
std::string WithUnixLineEnds(std::string text);

// ASCII alone.
std::string Lowercase(std::string_view text);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_ENCODING_H_
