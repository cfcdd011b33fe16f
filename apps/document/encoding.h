#ifndef TIERCEL_APPS_DOCUMENT_ENCODING_H_
#define TIERCEL_APPS_DOCUMENT_ENCODING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

enum class Charset {
  kUnknown,
  kUtf8,
  kUtf16Le,
  kUtf16Be,
  kUtf32,  // not decoded
  kWindows1252
};

// What a byte order mark says (that of UTF-32 before that of UTF-16, with which
// it may begin), and how many bytes the mark takes.
struct ByteOrderMark {
  Charset charset;  // kUnknown: there is none
  size_t bytes;
};
ByteOrderMark FindByteOrderMark(std::string_view bytes);

// The charset of an HTML label, as browsers read it: "latin1" and "us-ascii"
// are windows-1252 too. kUnknown for labels we do not decode.
Charset CharsetOfLabel(std::string_view label);

bool IsUtf8(std::string_view bytes);

// `bytes` (without a mark) as UTF-8. What is invalid becomes U+FFFD and is told
// in `warnings`; kUnknown is UTF-8 if valid, else Windows-1252 with a warning.
std::string ToUtf8(std::string_view bytes, Charset charset,
                   std::vector<std::string>* warnings);

void AppendUtf8(uint32_t code_point, std::string* out);

// Control characters that no reader shows (U+0000 to U+001F and U+007F, but not
// tab, line feed, vertical tab, form feed, carriage return) become spaces: many
// a vocabulary cannot spell them, and a terminal obeys some. Returns how many.
size_t ReplaceControls(std::string* text);

// CRLF and CR become LF.
std::string WithUnixLineEnds(std::string text);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_ENCODING_H_
