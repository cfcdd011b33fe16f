#include "lib/text/quote.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tiercel {
namespace {

constexpr size_t kMostQuotedBytes = 64;

}  // namespace

std::string Quoted(std::string_view text) {
  const bool cut = text.size() > kMostQuotedBytes;
  if (cut) text = text.substr(0, kMostQuotedBytes);
  const absl::string_view shown(text.data(), text.size());
  // If the cut splits a character the rest is not UTF-8: then every byte is
  // escaped.
  const std::string escaped = IsValidUtf8(text)
                                  ? absl::Utf8SafeCHexEscape(shown)
                                  : absl::CHexEscape(shown);
  return absl::StrCat("\"", escaped, cut ? "...\"" : "\"");
}

bool IsValidUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    // The range of the second byte excludes overlong forms, surrogates and
    // code points beyond U+10FFFF.
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t more;
    if (lead >= 0xc2 && lead <= 0xdf) {
      more = 1;
    } else if (lead >= 0xe0 && lead <= 0xef) {
      more = 2;
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
    } else if (lead >= 0xf0 && lead <= 0xf4) {
      more = 3;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    } else {
      return false;
    }
    if (text.size() - i < more) return false;
    for (; more > 0; --more, ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      if (next < low || next > high) return false;
      low = 0x80;
      high = 0xbf;
    }
  }
  return true;
}

}  // namespace tiercel
