#include "lib/reader/text.h"

#include <algorithm>

#include "lib/documents/unicode.h"

namespace tiercel::reader {

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

bool IsBlank(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const char32_t character = document::CharacterAt(text, at, &at);
    if (character < 0x80 &&
        kBlanks.find(static_cast<char>(character)) != std::string_view::npos) {
      continue;
    }
    const std::u32string shown = document::Decomposed(character);
    if (!shown.empty() && shown != U" ") return false;
  }
  return true;
}

std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find_first_of("\r\n"), text->size());
  const std::string_view line = text->substr(0, end);
  const bool two = text->substr(end, 2) == "\r\n";
  text->remove_prefix(std::min(end + (two ? 2 : 1), text->size()));
  return line;
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (size_t at = 0;;) {
    at = text.find_first_not_of(kBlanks, at);
    if (at == std::string_view::npos) return line;
    const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    if (!line.empty()) line += ' ';
    line += text.substr(at, end - at);
    at = end;
  }
}

}  // namespace tiercel::reader
