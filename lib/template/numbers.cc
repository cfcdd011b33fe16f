#include "lib/template/numbers.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "lib/template/builtins.h"
#include "lib/template/letter_case.h"
#include "lib/text/utf8.h"

namespace tiercel::jinja {
namespace {

// Returns the value of a decimal digit. Each script has its ten in order, and
// no digit stands right before its zero but the nine of others.
char DigitOf(char32_t digit) {
  std::string before;
  char32_t first = digit;
  for (;; --first) {
    before.clear();
    AppendUtf8(first - 1, &before);
    if (!ClassAt(before, 0).decimal) break;
  }
  return static_cast<char>('0' + (digit - first) % 10);
}

// Returns the text in small letters, without white space around it and its
// sign, with ASCII's digits; other characters become question marks.
std::string Plain(const Text& text, bool* negative) {
  const Text stripped = Strip(text, nullptr, Side::kBoth);
  const std::string_view bytes = stripped.bytes();
  std::string plain;
  size_t at = 0;
  *negative = !bytes.empty() && bytes[0] == '-';
  if (*negative || (!bytes.empty() && bytes[0] == '+')) at = 1;
  while (at < bytes.size()) {
    const Utf8Char c = Utf8At(bytes, at);
    if (c.bytes == 1) {
      plain += absl::ascii_tolower(static_cast<unsigned char>(bytes[at]));
    } else {
      plain += ClassAt(bytes, at).decimal ? DigitOf(c.code_point) : '?';
    }
    at += c.bytes;
  }
  return plain;
}

// Removes underscores; false if one is not between two digits.
bool RemoveUnderscores(bool (*is_digit)(unsigned char), std::string* text) {
  const auto digit_at = [&](size_t at) {
    return at < text->size() &&
           is_digit(static_cast<unsigned char>((*text)[at]));
  };
  for (size_t at = 0; at < text->size(); ++at) {
    if ((*text)[at] != '_') continue;
    if (at == 0 || !digit_at(at - 1) || !digit_at(at + 1)) return false;
  }
  text->erase(std::remove(text->begin(), text->end(), '_'), text->end());
  return true;
}

}  // namespace

std::optional<int64_t> ReadInteger(Rendering& rendering, const Text& text,
                                   int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  bool negative = false;
  std::string digits = Plain(text, &negative);
  for (const auto& [letter, own] :
       {std::pair('x', 16), std::pair('o', 8), std::pair('b', 2)}) {
    if (digits.size() < 2 || digits[0] != '0' || digits[1] != letter ||
        (base != own && base != 0)) {
      continue;
    }
    base = own;
    digits.erase(0, 2);
    if (digits.size() > 1 && digits[0] == '_') digits.erase(0, 1);
    break;
  }
  if (base == 0) base = 10;
  if (!RemoveUnderscores(absl::ascii_isalnum, &digits)) return std::nullopt;
  if (digits.empty()) return std::nullopt;
  int64_t value = 0;  // below zero, whose range is the larger
  bool fits = true;
  for (const char c : digits) {
    const int digit =
        absl::ascii_isdigit(static_cast<unsigned char>(c))   ? c - '0'
        : absl::ascii_isalpha(static_cast<unsigned char>(c)) ? c - 'a' + 10
                                                             : 36;
    if (digit >= base) return std::nullopt;
    fits = fits && !__builtin_mul_overflow(value, base, &value) &&
           !__builtin_sub_overflow(value, digit, &value);
  }
  if (!fits || (!negative && value == INT64_MIN)) {
    rendering.Fail("an integer is out of range");
    return 0;
  }
  return negative ? value : -value;
}

std::optional<double> ReadReal(const Text& text) {
  bool negative = false;
  std::string digits = Plain(text, &negative);
  if (!RemoveUnderscores(absl::ascii_isdigit, &digits) || digits.empty()) {
    return std::nullopt;
  }
  const bool is_name =
      digits == "inf" || digits == "infinity" || digits == "nan";
  double value = 0;
  if (!is_name &&
      (digits.find_first_not_of("0123456789.e+-") != std::string::npos ||
       digits[0] == '+' || digits[0] == '-')) {
    return std::nullopt;
  }
  if (!absl::SimpleAtod(digits, &value)) return std::nullopt;
  return negative ? -value : value;
}

int64_t Truncated(Rendering& rendering, double value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (value >= -kEnd && value < kEnd) return static_cast<int64_t>(value);
  rendering.Fail("an integer is out of range");
  return 0;
}

}  // namespace tiercel::jinja
