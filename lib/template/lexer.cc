#include "lib/template/lexer.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/template/text.h"
#include "lib/text/quote.h"
#include "lib/text/utf8.h"

namespace tiercel::jinja {
namespace {

constexpr size_t kMaxMessageBytes = 500;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80) != 0;
}
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  absl::StatusOr<std::vector<Token>> Rendering() {
    while (status_.ok() && at_ < source_.size()) LexData();
    if (!status_.ok()) return status_;
    Push(Token::Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  // Lexes one stretch of data and the tag after it.
  void LexData() {
    const std::string_view rest = Rest();
    const size_t tag = FindTag(rest);
    if (tag == std::string_view::npos) {
      PushData(rest);
      Advance(rest.size());
      return;
    }
    const char kind = rest[tag + 1];
    const char sign = tag + 2 < rest.size() ? rest[tag + 2] : '\0';
    const std::string_view data = rest.substr(0, tag);
    PushData(DataBefore(data, kind, sign));
    Advance(tag);
    if (kind == '#') {
      LexComment();
    } else if (kind == '%' && SkipWord(at_ + 2, "raw").has_value()) {
      LexRaw();
    } else {
      Push(kind == '{' ? Token::Kind::kVariableBegin : Token::Kind::kBlockBegin,
           "");
      Advance(sign == '-' || sign == '+' ? 3 : 2);
      LexTag(kind);
    }
  }

  static size_t FindTag(std::string_view text) {
    for (size_t at = text.find('{'); at != std::string_view::npos;
         at = text.find('{', at + 1)) {
      if (at + 1 < text.size() &&
          (text[at + 1] == '{' || text[at + 1] == '%' || text[at + 1] == '#')) {
        return at;
      }
    }
    return std::string_view::npos;
  }

  // Returns the part of `data` that remains before a tag: `-` removes all white
  // space at its end, and a block or comment that opens its line removes the
  // indentation.
  std::string_view DataBefore(std::string_view data, char kind,
                              char sign) const {
    if (sign == '-') {
      while (!data.empty()) {
        const size_t begin = CharacterBegin(data, data.size());
        if (!IsSpace(data.substr(begin))) break;
        data = data.substr(0, begin);
      }
      return data;
    }
    if (sign == '+' || kind == '{') return data;
    const size_t newline = data.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && !line_starts_) return data;
    for (size_t i = line; i < data.size();) {
      const size_t end = CharacterEnd(data, i);
      if (!IsSpace(data.substr(i, end - i))) return data;
      i = end;
    }
    return data.substr(0, line);
  }

  // Moves past a tag's end, whose two characters are at `end`. `-` before them
  // removes the white space after; otherwise one newline is removed, unless `+`
  // keeps it.
  void CloseTag(size_t end, char sign, bool trim_newline) {
    size_t next = end + 2;
    if (sign == '-') {
      while (next < source_.size()) {
        const size_t character = CharacterEnd(source_, next);
        if (!IsSpace(View(next, character))) break;
        next = character;
      }
    } else if (trim_newline && sign != '+' && next < source_.size() &&
               source_[next] == '\n') {
      ++next;
    }
    Advance(next - at_);
  }

  void LexComment() {
    const size_t end = source_.find("#}", at_ + 2);
    if (end == std::string::npos) {
      Fail("a comment has no end");
      return;
    }
    const char sign = end > at_ + 2 ? source_[end - 1] : '\0';
    CloseTag(end, sign, /*trim_newline=*/true);
  }

  // The end and the sign of a block whose `{%` at begin - 2 is followed by
  // `word` and a block end.
  struct WordEnd {
    size_t end;
    char sign;
  };
  std::optional<WordEnd> SkipWord(size_t begin, std::string_view word) const {
    size_t at = begin;
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
    const auto skip_space = [&] {
      while (at < source_.size() && IsSpace(View(at, at + 1))) ++at;
    };
    skip_space();
    if (std::string_view(source_).substr(at, word.size()) != word) return {};
    at += word.size();
    skip_space();
    char sign = '\0';
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) {
      sign = source_[at++];
    }
    if (std::string_view(source_).substr(at, 2) != "%}") return {};
    return WordEnd{at, sign};
  }

  void LexRaw() {
    const WordEnd begin = *SkipWord(at_ + 2, "raw");
    CloseTag(begin.end, begin.sign, /*trim_newline=*/false);
    size_t tag = source_.find("{%", at_);
    for (; tag != std::string::npos; tag = source_.find("{%", tag + 2)) {
      const std::optional<WordEnd> end = SkipWord(tag + 2, "endraw");
      if (!end.has_value()) continue;
      PushData(DataBefore(View(at_, tag), '%', source_[tag + 2]));
      Advance(tag - at_);
      CloseTag(end->end, end->sign, /*trim_newline=*/true);
      return;
    }
    Fail("a raw block has no end");
  }

  void LexTag(char kind) {
    const std::string_view close = kind == '{' ? "}}" : "%}";
    std::string open;  // open brackets; within them }} is no end
    while (status_.ok()) {
      while (at_ < source_.size() && IsSpace(CharacterAt())) {
        Advance(CharacterAt().size());
      }
      const std::string_view rest = Rest();
      if (rest.empty()) {
        Fail("a tag has no end");
        return;
      }
      if (open.empty()) {
        const char sign = rest[0] == '-' || rest[0] == '+' ? rest[0] : '\0';
        const size_t end = sign == '\0' ? 0 : 1;
        if (rest.substr(end, 2) == close && !(sign == '+' && kind == '{')) {
          Push(kind == '{' ? Token::Kind::kVariableEnd : Token::Kind::kBlockEnd,
               "");
          CloseTag(at_ + end, sign, /*trim_newline=*/kind == '%');
          return;
        }
      }
      if (IsDigit(rest[0])) {
        LexNumber();
      } else if (IsNameStart(rest[0])) {
        size_t end = 1;
        while (end < rest.size() && IsNamePart(rest[end])) ++end;
        Push(Token::Kind::kName, rest.substr(0, end));
        Advance(end);
      } else if (rest[0] == '\'' || rest[0] == '"') {
        LexString();
      } else {
        LexOperator(&open);
      }
    }
  }

  void LexOperator(std::string* open) {
    const std::string_view rest = Rest();
    for (const std::string_view pair : {"==", "!=", "<=", ">=", "//", "**"}) {
      if (rest.substr(0, 2) == pair) {
        Push(Token::Kind::kOperator, pair);
        Advance(2);
        return;
      }
    }
    const char c = rest[0];
    if (std::string_view("+-*/%~<>=.,:;|()[]{}").find(c) ==
        std::string_view::npos) {
      Fail(absl::StrCat("unexpected character '", Abseil(CharacterAt()), "'"));
      return;
    }
    if (c == '(' || c == '[' || c == '{') {
      open->push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open->empty() || open->back() != c) {
        Fail(absl::StrCat("unexpected '", Abseil(rest.substr(0, 1)), "'"));
        return;
      }
      open->pop_back();
    }
    Push(Token::Kind::kOperator, rest.substr(0, 1));
    Advance(1);
  }

  void LexNumber() {
    const std::string_view rest = Rest();
    std::string digits;  // without underscores
    size_t end = 0;
    const auto take_digits = [&] {
      while (end < rest.size() &&
             (IsDigit(rest[end]) ||
              (rest[end] == '_' && end > 0 && IsDigit(rest[end - 1])))) {
        if (rest[end] != '_') digits.push_back(rest[end]);
        ++end;
      }
    };
    // 0x2a, 0o52 and 0b101010.
    const char kind = rest.size() > 2 && rest[0] == '0' ? rest[1] : ' ';
    const int base = kind == 'x' || kind == 'X'   ? 16
                     : kind == 'o' || kind == 'O' ? 8
                     : kind == 'b' || kind == 'B' ? 2
                                                  : 10;
    if (base != 10) {
      end = 2;
      const auto is_digit = [base](char c) {
        int value = 0;
        return std::from_chars(&c, &c + 1, value, base).ptr == &c + 1;
      };
      while (end < rest.size() && (is_digit(rest[end]) || rest[end] == '_')) {
        if (rest[end] != '_') digits.push_back(rest[end]);
        ++end;
      }
    }
    if (base == 10) take_digits();
    bool is_float = false;
    if (base == 10 && end + 1 < rest.size() && rest[end] == '.' &&
        IsDigit(rest[end + 1])) {
      is_float = true;
      digits.push_back(rest[end++]);
      take_digits();
    }
    if (base == 10 && end < rest.size() &&
        (rest[end] == 'e' || rest[end] == 'E')) {
      const size_t sign = end + 1 < rest.size() &&
                                  (rest[end + 1] == '-' || rest[end + 1] == '+')
                              ? 1
                              : 0;
      if (end + 1 + sign < rest.size() && IsDigit(rest[end + 1 + sign])) {
        is_float = true;
        digits.append(rest[end + sign] == '-' ? "e-" : "e");
        end += 1 + sign;
        take_digits();
      }
    }
    Push(is_float ? Token::Kind::kFloat : Token::Kind::kInteger, "");
    const char* const first = digits.data();
    const char* const last = first + digits.size();
    const std::from_chars_result parsed =
        is_float ? std::from_chars(first, last, tokens_.back().real)
                 : std::from_chars(first, last, tokens_.back().integer, base);
    if (parsed.ec != std::errc() || parsed.ptr != last) {
      Fail(absl::StrCat("number ", digits, " is out of range"));
    }
    Advance(end);
  }

  void LexString() {
    const char quote = source_[at_];
    size_t at = at_ + 1;
    std::string value;
    while (at < source_.size() && source_[at] != quote) {
      if (source_[at] != '\\') {
        value.push_back(source_[at++]);
      } else {
        at = Unescape(at + 1, &value);
      }
    }
    if (at >= source_.size()) {
      Fail("a string has no end");
      return;
    }
    Push(Token::Kind::kString, value);
    Advance(at + 1 - at_);
  }

  // Appends the value of the escape whose letter is at `at`, and returns its
  // end.
  size_t Unescape(size_t at, std::string* value) {
    if (at >= source_.size()) return at;
    const char letter = source_[at++];
    constexpr std::string_view kLetters = "\\'\"abfnrtv";
    constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t i = kLetters.find(letter); i != std::string_view::npos) {
      value->push_back(kValues[i]);
      return at;
    }
    if (letter == '\n') return at;
    if (letter >= '0' && letter <= '7') {
      uint32_t code_point = static_cast<uint32_t>(letter - '0');
      for (int i = 0; i < 2 && at < source_.size() && source_[at] >= '0' &&
                      source_[at] <= '7';
           ++i) {
        code_point =
            code_point * 8 + static_cast<uint32_t>(source_[at++] - '0');
      }
      AppendUtf8(code_point, value);
      return at;
    }
    const size_t digits = letter == 'x'   ? 2
                          : letter == 'u' ? 4
                          : letter == 'U' ? 8
                                          : 0;
    if (digits == 0) {  // Python keeps an unknown escape as it is
      value->push_back('\\');
      value->push_back(letter);
      return at;
    }
    uint32_t code_point = 0;
    const size_t end = std::min(at + digits, source_.size());
    const char* const last = source_.data() + end;
    const std::from_chars_result parsed =
        std::from_chars(source_.data() + at, last, code_point, 16);
    if (end != at + digits || parsed.ec != std::errc() || parsed.ptr != last ||
        code_point > 0x10FFFF ||
        (code_point >= 0xD800 && code_point < 0xE000)) {
      Fail("an escape in a string is no character");
      return source_.size();
    }
    AppendUtf8(code_point, value);
    return end;
  }

  std::string_view View(size_t begin, size_t end) const {
    return std::string_view(source_).substr(begin, end - begin);
  }
  std::string_view Rest() const { return View(at_, source_.size()); }
  std::string_view CharacterAt() const {
    return View(at_, CharacterEnd(source_, at_));
  }

  void Advance(size_t bytes) {
    if (bytes == 0) return;
    const std::string_view passed = View(at_, at_ + bytes);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    line_starts_ = passed.back() == '\n';
    at_ += bytes;
  }

  void Push(Token::Kind kind, std::string_view text) {
    tokens_.push_back({kind, line_, std::string(text)});
  }
  void PushData(std::string_view data) {
    if (!data.empty()) Push(Token::Kind::kData, data);
  }
  void Fail(std::string_view message) {
    if (status_.ok()) status_ = TemplateError(line_, message);
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  // the data before ended a line
  std::vector<Token> tokens_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view source) {
  std::string lines;
  lines.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      lines.push_back(source[i]);
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      lines.push_back('\n');
    }
  }
  if (!lines.empty() && lines.back() == '\n') lines.pop_back();
  return Lexer(std::move(lines)).Rendering();
}

absl::Status TemplateError(int line, std::string_view message) {
  // The message may quote the template or a conversation.
  std::string shown(message.substr(0, kMaxMessageBytes));
  for (char& byte : shown) {
    if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F) byte = ' ';
  }
  if (!IsValidUtf8(shown)) shown = absl::CHexEscape(shown);
  return InputError("template_error",
                    absl::StrCat("chat template, line ", line, ": ", shown));
}

}  // namespace tiercel::jinja
