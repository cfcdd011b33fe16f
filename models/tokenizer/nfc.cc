#include "models/tokenizer/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "lib/text/utf8.h"

namespace tiercel {
namespace {

// No code point below this composes with a character before it, nor does the
// first code point of its decomposition, so a text may be cut before it.
constexpr char32_t kLeastMark = 0x300;
// The most text that is decomposed at a time, if it can be cut.
constexpr size_t kMostDecomposed = 1 << 14;

int CombiningClass(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

bool IsStarter(utf8proc_int32_t c) { return CombiningClass(c) == 0; }

// The library's own ordering of marks is quadratic in their number, which
// untrusted text controls. So marks are sorted here, between starters.
void OrderMarks(std::vector<utf8proc_int32_t>* decomposed) {
  const auto end = decomposed->end();
  auto begin = decomposed->begin();
  while ((begin = std::find_if_not(begin, end, IsStarter)) != end) {
    const auto starter = std::find_if(begin, end, IsStarter);
    std::stable_sort(begin, starter, [](auto a, auto b) {
      return CombiningClass(a) < CombiningClass(b);
    });
    begin = starter;
  }
}

void AppendComposed(std::vector<utf8proc_int32_t>* decomposed,
                    std::string* text) {
  OrderMarks(decomposed);
  const utf8proc_ssize_t count = utf8proc_normalize_utf32(
      decomposed->data(), static_cast<utf8proc_ssize_t>(decomposed->size()),
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    AppendUtf8(static_cast<char32_t>((*decomposed)[i]), text);
  }
  decomposed->clear();
}

// No canonical decomposition is longer.
constexpr utf8proc_ssize_t kMostParts = 4;

// Returns the number of parts that a character decomposes into.
utf8proc_ssize_t Decompose(char32_t c, utf8proc_int32_t (&parts)[kMostParts]) {
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), parts, kMostParts,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE),
      /*last_boundclass=*/nullptr);
  return std::clamp<utf8proc_ssize_t>(count, 0, kMostParts);
}

}  // namespace

std::string ComposeNfc(std::string_view text) {
  // Below U+0300, the first byte of which is 0xcc, nothing composes or
  // decomposes.
  const bool may_change = std::any_of(text.begin(), text.end(), [](char byte) {
    return static_cast<unsigned char>(byte) >= 0xcc;
  });
  if (!may_change) return std::string(text);

  std::string composed;
  composed.reserve(text.size());
  std::vector<utf8proc_int32_t> decomposed;
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = Utf8At(text, i);
    if (c.code_point == kNoCodePoint) {
      AppendComposed(&decomposed, &composed);
      composed.push_back(text[i]);
    } else {
      if (c.code_point < kLeastMark && decomposed.size() >= kMostDecomposed) {
        AppendComposed(&decomposed, &composed);
      }
      utf8proc_int32_t parts[kMostParts];
      const utf8proc_ssize_t count = Decompose(c.code_point, parts);
      decomposed.insert(decomposed.end(), parts, parts + count);
    }
    i += c.bytes;
  }
  AppendComposed(&decomposed, &composed);
  return composed;
}

bool IsFixedInNfc(std::string_view text) {
  constexpr char32_t kJamo[2] = {0x1100, 0x11ff};  // they form syllables
  constexpr uint16_t kComposesNever = UINT16_MAX;
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = Utf8At(text, i);
    i += c.bytes;
    if (c.code_point < 0x80) continue;
    if (c.code_point == kNoCodePoint ||
        (kJamo[0] <= c.code_point && c.code_point <= kJamo[1])) {
      return false;
    }
    const auto code_point = static_cast<utf8proc_int32_t>(c.code_point);
    utf8proc_int32_t parts[kMostParts];
    const utf8proc_ssize_t count = Decompose(c.code_point, parts);
    const utf8proc_property_t& property = *utf8proc_get_property(code_point);
    if (count != 1 || parts[0] != code_point || property.combining_class != 0 ||
        property.comb_index != kComposesNever) {
      return false;
    }
  }
  return true;
}

}  // namespace tiercel
