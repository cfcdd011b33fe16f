#include "apps/document/encoding.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tiercel::document {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

// Windows-1252 from 0x80 to 0x9F, as the WHATWG Encoding Standard has it: the
// five bytes without a character stand for themselves.
constexpr std::array<uint16_t, 32> kWindows1252 = {
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
    0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x008D, 0x017D, 0x008F,
    0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178};

uint8_t Byte(std::string_view bytes, size_t at) {
  return static_cast<uint8_t>(bytes[at]);
}

// How many bytes of `bytes` from `at` make one valid UTF-8 character; 0 if
// they make none.
size_t Utf8Length(std::string_view bytes, size_t at) {
  const uint8_t lead = Byte(bytes, at);
  if (lead < 0x80) return 1;
  size_t length = 0;
  uint8_t least = 0x80;  // of the second byte
  uint8_t most = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) least = 0xA0;  // overlong below
    if (lead == 0xED) most = 0x9F;   // surrogates above
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) least = 0x90;
    if (lead == 0xF4) most = 0x8F;  // beyond U+10FFFF above
  }
  if (length == 0 || bytes.size() - at < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    const uint8_t next = Byte(bytes, at + i);
    if (next < least || next > most) return 0;
    least = 0x80;
    most = 0xBF;
  }
  return length;
}

std::string FromUtf8(std::string_view bytes, size_t* num_invalid) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = Utf8Length(bytes, at);
    if (length == 0) {
      AppendUtf8(kReplacement, &text);
      ++*num_invalid;
      ++at;
    } else {
      text.append(bytes, at, length);
      at += length;
    }
  }
  return text;
}

std::string FromUtf16(std::string_view bytes, bool big_endian,
                      size_t* num_invalid) {
  const auto unit_at = [&](size_t at) {
    const uint32_t first = Byte(bytes, at);
    const uint32_t second = Byte(bytes, at + 1);
    return big_endian ? first << 8 | second : second << 8 | first;
  };
  std::string text;
  text.reserve(bytes.size());
  size_t at = 0;
  while (at + 2 <= bytes.size()) {
    uint32_t code_point = unit_at(at);
    at += 2;
    if (code_point >= 0xD800 && code_point < 0xE000) {
      const uint32_t low = at + 2 <= bytes.size() ? unit_at(at) : 0;
      if (code_point < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
        code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
        at += 2;
      } else {
        code_point = kReplacement;
        ++*num_invalid;
      }
    }
    AppendUtf8(code_point, &text);
  }
  if (at < bytes.size()) {  // half a unit
    AppendUtf8(kReplacement, &text);
    ++*num_invalid;
  }
  return text;
}

std::string FromWindows1252(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint8_t byte = Byte(bytes, i);
    const bool is_special = byte >= 0x80 && byte < 0xA0;
    AppendUtf8(is_special ? kWindows1252[byte - 0x80] : byte, &text);
  }
  return text;
}

}  // namespace

ByteOrderMark FindByteOrderMark(std::string_view bytes) {
  if (bytes.substr(0, 3) == "\xEF\xBB\xBF") return {Charset::kUtf8, 3};
  for (const std::string_view mark : {std::string_view("\xFF\xFE\0\0", 4),
                                      std::string_view("\0\0\xFE\xFF", 4)}) {
    if (bytes.substr(0, 4) == mark) return {Charset::kUtf32, 4};
  }
  if (bytes.substr(0, 2) == "\xFF\xFE") return {Charset::kUtf16Le, 2};
  if (bytes.substr(0, 2) == "\xFE\xFF") return {Charset::kUtf16Be, 2};
  return {Charset::kUnknown, 0};
}

Charset CharsetOfLabel(std::string_view label) {
  std::string name(label);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  for (const char* utf8 : {"utf-8", "utf8", "unicode-1-1-utf-8"}) {
    if (name == utf8) return Charset::kUtf8;
  }
  for (const char* latin :
       {"windows-1252", "cp1252", "x-cp1252", "iso-8859-1", "iso8859-1",
        "iso_8859-1", "iso88591", "latin1", "l1", "us-ascii", "ascii"}) {
    if (name == latin) return Charset::kWindows1252;
  }
  return Charset::kUnknown;
}

bool IsUtf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = Utf8Length(bytes, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string ToUtf8(std::string_view bytes, Charset charset,
                   std::vector<std::string>* warnings) {
  if (charset == Charset::kUnknown) {
    if (IsUtf8(bytes)) return std::string(bytes);
    warnings->push_back("not UTF-8; read as Windows-1252");
    charset = Charset::kWindows1252;
  }
  if (charset == Charset::kWindows1252) return FromWindows1252(bytes);
  size_t num_invalid = 0;
  std::string text =
      charset == Charset::kUtf8
          ? FromUtf8(bytes, &num_invalid)
          : FromUtf16(bytes, charset == Charset::kUtf16Be, &num_invalid);
  if (num_invalid > 0) {
    warnings->push_back(std::to_string(num_invalid) +
                        " invalid byte sequences became U+FFFD");
  }
  return text;
}

void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto put = [out](uint32_t byte) {
    out->push_back(static_cast<char>(byte));
  };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

size_t ReplaceControls(std::string* text) {
  size_t replaced = 0;
  for (char& c : *text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && (byte < '\t' || byte > '\r')) || byte == 0x7F) {
      c = ' ';
      ++replaced;
    }
  }
  return replaced;
}

std::string WithUnixLineEnds(std::string text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r') {
      if (at + 1 < text.size() && text[at + 1] == '\n') continue;
      text[end++] = '\n';
    } else {
      text[end++] = text[at];
    }
  }
  text.resize(end);
  return text;
}

}  // namespace tiercel::document
