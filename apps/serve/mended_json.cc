#include "apps/serve/mended_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "lib/text/utf8.h"

namespace tiercel::serve {
namespace {

constexpr size_t kUnitBytes = 6;  // "\ud800" has so many

// Returns the UTF-16 code unit whose escape is at `at`; 0: there is none.
uint32_t UnitAt(std::string_view text, size_t at) {
  const std::string escape(text.substr(std::min(at, text.size()), kUnitBytes));
  if (escape.size() < kUnitBytes || escape.compare(0, 2, "\\u") != 0 ||
      escape.find_first_not_of("0123456789abcdefABCDEF", 2) !=
          std::string::npos) {
    return 0;
  }
  return static_cast<uint32_t>(
      std::strtoul(escape.c_str() + 2, nullptr, /*base=*/16));
}

bool IsHigh(uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLow(uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// Appends the escape at `at`, or U+FFFD for half of a pair. Returns its bytes.
size_t AppendEscape(std::string_view text, size_t at, std::string* mended) {
  const uint32_t unit = UnitAt(text, at);
  const bool is_pair = IsHigh(unit) && IsLow(UnitAt(text, at + kUnitBytes));
  const size_t bytes = is_pair ? 2 * kUnitBytes : unit != 0 ? kUnitBytes : 2;
  if (!is_pair && (IsHigh(unit) || IsLow(unit))) {
    mended->append("\\ufffd");
  } else {
    mended->append(text.substr(at, bytes));
  }
  return bytes;
}

}  // namespace

std::string MendedJson(std::string_view text) {
  const std::string whole = ReplaceInvalidUtf8(text);
  std::string mended;
  bool in_string = false;
  for (size_t at = 0; at < whole.size();) {
    const char c = whole[at];
    if (in_string && c == '\\') {
      at += AppendEscape(whole, at, &mended);
      continue;
    }
    if (!in_string && (c == '-' || (c >= '0' && c <= '9'))) {
      const size_t end = std::min(
          whole.find_first_not_of("+-.0123456789eE", at), whole.size());
      const std::string number = whole.substr(at, end - at);
      mended +=
          std::isfinite(std::strtod(number.c_str(), nullptr)) ? number : "0";
      at = end;
      continue;
    }
    if (c == '"') in_string = !in_string;
    mended += in_string && static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    ++at;
  }
  return mended;
}

}  // namespace tiercel::serve
