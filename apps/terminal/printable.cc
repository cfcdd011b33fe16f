#include "apps/terminal/printable.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace tiercel::cli {
namespace {

bool DrivesTerminal(int32_t character) {
  if (character == '\n' || character == '\t') return false;
  return character < 0x20 || (character >= 0x7f && character < 0xa0) ||
         (character >= 0x202a && character <= 0x202e) ||  // LRE to RLO
         (character >= 0x2066 && character <= 0x2069);    // LRI to PDI
}

// The code point at `at`, and its size in bytes; below 0 if there is none.
int32_t CodePointAt(std::string_view text, size_t at, size_t* bytes) {
  int32_t character = 0;
  const utf8proc_ssize_t length = utf8proc_iterate(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
      static_cast<utf8proc_ssize_t>(text.size() - at), &character);
  *bytes = static_cast<size_t>(std::max<utf8proc_ssize_t>(length, 1));
  return length > 0 ? character : -1;
}

}  // namespace

TerminalCharacter CharacterAt(std::string_view text, size_t at) {
  TerminalCharacter found;
  const int32_t character = CodePointAt(text, at, &found.bytes);
  found.is_safe = character >= 0 && !DrivesTerminal(character);
  if (!found.is_safe) return found;
  found.columns = utf8proc_charwidth(character);
  found.is_wide = found.columns == 2;
  return found;
}

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const TerminalCharacter character = CharacterAt(text, at);
    if (character.is_safe) {
      printable.append(text.substr(at, character.bytes));
    } else if (text.substr(at, 2) != "\r\n") {
      printable += '?';
    }
    at += character.bytes;
  }
  return printable;
}

size_t ColumnsOf(std::string_view text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size();) {
    const TerminalCharacter character = CharacterAt(text, at);
    columns += character.is_safe ? static_cast<size_t>(character.columns) : 1;
    at += character.bytes;
  }
  return columns;
}

std::string PrintableJson(std::string_view document) {
  std::string printable;
  printable.reserve(document.size());
  for (size_t at = 0; at < document.size();) {
    size_t bytes = 0;
    const int32_t character = CodePointAt(document, at, &bytes);
    if (character >= 0 && DrivesTerminal(character)) {
      absl::StrAppendFormat(&printable, "\\u%04x", character);
    } else {
      printable.append(document.substr(at, bytes));
    }
    at += bytes;
  }
  return printable;
}

}  // namespace tiercel::cli
