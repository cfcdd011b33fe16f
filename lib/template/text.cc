#include "lib/template/text.h"

#include <algorithm>

namespace tiercel::jinja {
namespace {

bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

Text::Text(std::string_view bytes, Origin origin) { Append(bytes, origin); }

Origin Text::OriginAt(size_t position) const {
  const auto after = std::upper_bound(flips_.begin(), flips_.end(), position);
  return (after - flips_.begin()) % 2 == 0 ? Origin::kTemplate
                                           : Origin::kMessage;
}

void Text::Append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  if (EndOrigin() != origin) flips_.push_back(bytes_.size());
  bytes_.append(bytes);
}

void Text::Append(const Text& other, size_t begin, size_t end) {
  if (begin >= end) return;
  if (&other == this) {
    const Text copy = other;  // NOLINT: what follows changes this
    Append(copy, begin, end);
    return;
  }
  if (EndOrigin() != other.OriginAt(begin)) flips_.push_back(bytes_.size());
  auto flip = std::upper_bound(other.flips_.begin(), other.flips_.end(), begin);
  for (; flip != other.flips_.end() && *flip < end; ++flip) {
    flips_.push_back(bytes_.size() + (*flip - begin));
  }
  bytes_.append(other.bytes_, begin, end - begin);
}

Text Text::Cut(size_t begin, size_t end) const {
  Text cut;
  cut.Append(*this, begin, end);
  return cut;
}

size_t CountCharacters(std::string_view text) {
  if (text.empty()) return 0;
  size_t count = 1;
  for (size_t i = 1; i < text.size(); ++i) count += !IsContinuation(text[i]);
  return count;
}

size_t CharacterEnd(std::string_view text, size_t begin) {
  size_t end = begin + 1;
  while (end < text.size() && IsContinuation(text[end])) ++end;
  return end;
}

size_t CharacterBegin(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && IsContinuation(text[begin])) --begin;
  return begin;
}

bool IsSpace(std::string_view character) {
  if (character.size() == 1) {
    const char c = character[0];
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
  }
  // U+0085, U+00A0, U+1680, U+2000..200A, U+2028, U+2029, U+202F, U+205F,
  // U+3000
  if (character.size() == 2) {
    return character == "\xC2\x85" || character == "\xC2\xA0";
  }
  if (character.size() != 3) return false;
  if (character.substr(0, 2) == "\xE2\x80") {
    const auto last = static_cast<unsigned char>(character[2]);
    return last <= 0x8A || last == 0xA8 || last == 0xA9 || last == 0xAF;
  }
  return character == "\xE1\x9A\x80" || character == "\xE2\x81\x9F" ||
         character == "\xE3\x80\x80";
}

}  // namespace tiercel::jinja
