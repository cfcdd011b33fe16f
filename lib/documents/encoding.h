#ifndef TIERCEL_LIB_DOCUMENTS_ENCODING_H_
#define TIERCEL_LIB_DOCUMENTS_ENCODING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// Charsets have the names that iconv knows: "UTF-8", "KOI8-R". "" means none.

// The charset that a byte order mark declares, and the mark's size. The
// UTF-32LE mark begins with that of UTF-16LE, so it is tried first.
struct ByteOrderMark {
  std::string_view charset;  // UTF-8, UTF-16LE, UTF-16BE, UTF-32LE, UTF-32BE
  size_t bytes;
};
ByteOrderMark FindByteOrderMark(std::string_view bytes);

// Returns the charset for a label in a page, as browsers read it: "latin1" and
// "us-ascii" are WINDOWS-1252 too, "gb2312" is GB18030. "" for labels that
// iconv does not know.
std::string CharsetOfLabel(std::string_view label);

// Returns the charset that a <meta> in the first 1024 bytes or an XML
// declaration names, in lower case; "" if there is none.
std::string DeclaredCharset(std::string_view bytes);

// Guesses the charset of bytes that declare none: UTF-8 if they are valid, else
// what uchardet takes them for, or a charset like it against which less speaks
// (controls, signs within words), else WINDOWS-1252.
std::string GuessCharset(std::string_view bytes);

// Returns UTF-16LE or UTF-16BE for text in it that has no mark, "" for other
// bytes: half of the bytes of a space and a line end are NULs, and which half
// tells the order of bytes.
std::string_view GuessUtf16(std::string_view bytes);

bool IsUtf8(std::string_view bytes);

// Returns `bytes` with each byte that belongs to no valid character replaced by
// U+FFFD.
std::string ValidUtf8(std::string_view bytes);

// Converts `bytes` (without a mark) to UTF-8. Bytes that are invalid in
// `charset` become U+FFFD, with a warning. If `charset` is "" it is guessed,
// with a warning unless it is UTF-8.
std::string ToUtf8(std::string_view bytes, std::string_view charset,
                   std::vector<std::string>* warnings);

// Converts a whole file to UTF-8: a text from the charset of its byte order
// mark, a page from that, or the charset with the label `given`, or the one
// that it declares. Bytes that are valid UTF-8 are read as UTF-8 whatever they
// declare. An unknown charset is guessed, with a warning.
std::string DecodeText(std::string_view bytes,
                       std::vector<std::string>* warnings);
std::string DecodePage(std::string_view bytes,
                       std::vector<std::string>* warnings,
                       std::string_view given = {});

// Returns true for control characters that no reader shows (U+0000 to U+001F
// and U+007F, except for tab, line feed, vertical tab, form feed and carriage
// return).
bool IsControl(char c);

// Replaces control characters by spaces: many vocabularies cannot spell them,
// and a terminal obeys some. Returns their number.
size_t ReplaceControls(std::string* text);

// Replaces CRLF and CR by LF.
std::string WithUnixLineEnds(std::string text);

// Only ASCII letters are changed.
std::string Lowercase(std::string_view text);

// Returns the byte that the first two characters of `text` spell in hexadecimal
// digits; -1 if they do not.
int HexByte(std::string_view text);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_ENCODING_H_
