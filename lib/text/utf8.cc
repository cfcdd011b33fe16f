#include "lib/text/utf8.h"

#include <algorithm>
#include <cstdint>

namespace tiercel {
namespace {

uint8_t ByteAt(std::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

// Returns the length of the sequence that `lead` begins; 0 if it begins none.
size_t SequenceBytes(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;  // continuation, or overlong
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

// The second byte shows overlong forms, surrogates and code points beyond
// U+10FFFF.
bool IsSecondByte(uint8_t lead, uint8_t byte) {
  const uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return least <= byte && byte <= most;
}

// Returns the number of bytes from `begin` on that agree with the sequence that
// begins there, at least 1. `*whole` is set to true if the sequence is
// complete.
size_t AgreeingBytes(std::string_view text, size_t begin, bool* whole) {
  const uint8_t lead = ByteAt(text, begin);
  const size_t need = SequenceBytes(lead);
  const size_t most = std::min(need, text.size() - begin);
  size_t agree = 1;
  while (agree < most) {
    const uint8_t byte = ByteAt(text, begin + agree);
    if (agree == 1 ? !IsSecondByte(lead, byte) : (byte & 0xc0) != 0x80) break;
    ++agree;
  }
  *whole = agree == need;
  return agree;
}

}  // namespace

Utf8Char Utf8At(std::string_view text, size_t begin) {
  if (begin >= text.size()) return {kNoCodePoint, 0};
  const uint8_t lead = ByteAt(text, begin);
  if (lead < 0x80) return {lead, 1};
  bool whole;
  const size_t bytes = AgreeingBytes(text, begin, &whole);
  if (!whole) return {kNoCodePoint, 1};
  char32_t code_point = lead & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    code_point = code_point << 6 | (ByteAt(text, begin + i) & 0x3f);
  }
  return {code_point, bytes};
}

void AppendUtf8(char32_t code_point, std::string* text) {
  const auto put = [text](char32_t byte) {
    text->push_back(static_cast<char>(byte));
  };
  const auto put_tail = [put, code_point](int shift) {
    put(0x80 | (code_point >> shift & 0x3f));
  };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
    put_tail(0);
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    put_tail(6);
    put_tail(0);
  } else {
    put(0xf0 | code_point >> 18);
    put_tail(12);
    put_tail(6);
    put_tail(0);
  }
}

size_t UnfinishedUtf8(std::string_view text) {
  const size_t most = std::min(kMostUnfinishedBytes, text.size());
  for (size_t back = 1; back <= most; ++back) {
    const size_t begin = text.size() - back;
    const size_t need = SequenceBytes(ByteAt(text, begin));
    if (need == 0) continue;  // a continuation byte: its lead is further back
    bool whole;
    const bool agrees = AgreeingBytes(text, begin, &whole) == back;
    return agrees && !whole ? back : 0;
  }
  return 0;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    bool whole;
    const size_t bytes = AgreeingBytes(text, i, &whole);
    if (whole) {
      valid.append(text.substr(i, bytes));
    } else {
      AppendUtf8(0xfffd, &valid);
    }
    i += bytes;
  }
  return valid;
}

}  // namespace tiercel
