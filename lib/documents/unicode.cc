#include "lib/documents/unicode.h"

#include <utf8proc.h>

#include <cstdlib>

namespace tiercel::document {
namespace {

constexpr char32_t kNoCharacter = 0xFFFD;

utf8proc_category_t CategoryOf(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

// Returns a text in NFC, changed as `option` says.
std::string Mapped(const std::string& text, utf8proc_option_t option) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE |
                                                  UTF8PROC_COMPOSE | option));
  if (length < 0) return text;  // it is not UTF-8
  std::string key(reinterpret_cast<const char*>(mapped),
                  static_cast<size_t>(length));
  std::free(mapped);
  return key;
}

}  // namespace

char32_t CharacterAt(std::string_view text, size_t at, size_t* next) {
  *next = at;
  if (at >= text.size()) return 0;
  utf8proc_int32_t character = 0;
  const utf8proc_ssize_t length = utf8proc_iterate(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
      static_cast<utf8proc_ssize_t>(text.size() - at), &character);
  if (length <= 0) {
    *next = at + 1;
    return kNoCharacter;
  }
  *next = at + static_cast<size_t>(length);
  return static_cast<char32_t>(character);
}

char32_t CharacterBefore(std::string_view text, size_t at) {
  if (at == 0) return 0;
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 &&
         (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) {
    --begin;
  }
  size_t next = 0;
  return CharacterAt(text, begin, &next);
}

std::u32string ToUtf32(std::string_view text) {
  std::u32string characters;
  for (size_t at = 0; at < text.size();) {
    characters.push_back(CharacterAt(text, at, &at));
  }
  return characters;
}

std::string FromUtf32(std::u32string_view text) {
  std::string bytes;
  for (const char32_t character : text) {
    utf8proc_uint8_t encoded[4];
    const utf8proc_ssize_t length =
        utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), encoded);
    bytes.append(reinterpret_cast<const char*>(encoded),
                 static_cast<size_t>(length));
  }
  return bytes;
}

std::string CaseFolded(const std::string& text) {
  return Mapped(text, UTF8PROC_CASEFOLD);
}

std::string Composed(const std::string& text) {
  return Mapped(text, static_cast<utf8proc_option_t>(0));
}

char32_t LowerCase(char32_t character) {
  return static_cast<char32_t>(
      utf8proc_tolower(static_cast<utf8proc_int32_t>(character)));
}

std::u32string WithoutAccents(char32_t character) {
  constexpr char32_t kEndOfCyrillic = 0x0530;
  constexpr char32_t kMoreLatin = 0x1E00;
  constexpr char32_t kEndOfGreek = 0x2000;
  if (character < 0x80) return {character};
  if (character == U'œ') return U"oe";
  if (character == U'æ') return U"ae";
  if (character == U'ß') return U"ss";
  const bool has_accents = character < kEndOfCyrillic ||
                           (character >= kMoreLatin && character < kEndOfGreek);
  utf8proc_int32_t parts[4];
  const utf8proc_ssize_t count =
      has_accents
          ? utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character),
                                    parts, 4, UTF8PROC_DECOMPOSE, nullptr)
          : 0;
  if (count <= 0 || count > 4) return {character};
  return {static_cast<char32_t>(parts[0])};
}

std::u32string Decomposed(char32_t character) {
  constexpr size_t kMost = 18;  // U+FDFA has the most
  utf8proc_int32_t parts[kMost];
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(character), parts, kMost,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                     UTF8PROC_COMPAT | UTF8PROC_IGNORE |
                                     UTF8PROC_LUMP),
      nullptr);
  if (count < 0 || static_cast<size_t>(count) > kMost) return {character};
  return {parts, parts + count};
}

bool IsLetter(char32_t character) {
  const utf8proc_category_t category = CategoryOf(character);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsMark(char32_t character) {
  const utf8proc_category_t category = CategoryOf(character);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool IsUpperCase(char32_t character) {
  return CategoryOf(character) == UTF8PROC_CATEGORY_LU;
}

bool IsLowerCase(char32_t character) {
  return CategoryOf(character) == UTF8PROC_CATEGORY_LL;
}

bool IsDigit(char32_t character) {
  return CategoryOf(character) == UTF8PROC_CATEGORY_ND;
}

bool IsIdeographic(char32_t character) {
  return (character >= 0x2E80 && character < 0xA4D0) ||  // to Yi
         (character >= 0xF900 && character < 0xFB00) ||  // compatibility
         (character >= 0xFE30 && character < 0xFE50) ||  // vertical forms
         (character >= 0xFF00 && character < 0xFFEF) ||  // full width
         (character >= 0x20000 && character < 0x40000);
}

bool IsRightToLeft(char32_t character) {
  const auto direction =
      utf8proc_get_property(static_cast<utf8proc_int32_t>(character))
          ->bidi_class;
  return direction == UTF8PROC_BIDI_CLASS_R ||
         direction == UTF8PROC_BIDI_CLASS_AL;
}

std::u32string WithoutPresentationForms(std::u32string_view text) {
  std::u32string letters;
  for (const char32_t c : text) {
    const bool is_form =
        (c >= 0xFB1D && c <= 0xFDFF) || (c >= 0xFE70 && c <= 0xFEFC);
    utf8proc_int32_t parts[18];
    const utf8proc_ssize_t count =
        is_form ? utf8proc_decompose_char(
                      static_cast<utf8proc_int32_t>(c), parts, 18,
                      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE |
                                                     UTF8PROC_COMPAT),
                      nullptr)
                : 0;
    if (count <= 0 || count > 18) {
      letters.push_back(c);
      continue;
    }
    letters.append(parts, parts + count);
  }
  return letters;
}

int ColumnsOf(std::string_view text) {
  int columns = 0;
  for (size_t at = 0; at < text.size();) {
    columns += utf8proc_charwidth(
        static_cast<utf8proc_int32_t>(CharacterAt(text, at, &at)));
  }
  return columns;
}

}  // namespace tiercel::document
