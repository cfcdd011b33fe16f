#include "lib/template/printf.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "lib/template/builtins.h"
#include "lib/template/format.h"
#include "lib/text/utf8.h"

namespace tiercel::jinja {
namespace {

constexpr int64_t kMostWidth = 100'000;
constexpr int64_t kMostDigits = 300;

// [[fill]align][sign][#][0][width][grouping][.precision][type]
struct Spec {
  Text fill = Text(" ");
  char align = 0;  // 0: by the kind of the value
  char sign = '-';
  bool alternate = false;
  char grouping = 0;
  int64_t width = 0;
  int64_t precision = -1;  // absent
  char type = 0;           // absent
};

// Reads digits from `at` on; false if there are none.
bool TakeNumber(std::string_view text, size_t* at, int64_t* number) {
  const size_t begin = *at;
  *number = 0;
  while (*at < text.size() && absl::ascii_isdigit(text[*at])) {
    *number = std::min(*number * 10 + (text[*at] - '0'), kMostWidth + 1);
    ++*at;
  }
  return *at > begin;
}

bool IsAlign(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

bool ParseSpec(Rendering& rendering, const Text& text, Spec* spec) {
  const std::string_view s = text.bytes();
  size_t at = 0;
  const size_t first = s.empty() ? 0 : CharacterEnd(s, 0);
  if (first < s.size() && IsAlign(s[first])) {
    spec->fill = text.Cut(0, first);
    spec->align = s[first];
    at = first + 1;
  } else if (!s.empty() && IsAlign(s[0])) {
    spec->align = s[0];
    at = 1;
  }
  const auto take = [&](std::string_view any, char* to) {
    if (at == s.size() || any.find(s[at]) == std::string_view::npos) {
      return false;
    }
    *to = s[at++];
    return true;
  };
  char c = 0;
  take("+- ", &spec->sign);
  spec->alternate = take("#", &c);
  if (take("0", &c) && spec->align == 0) {
    spec->fill = Text("0");
    spec->align = '=';
  }
  TakeNumber(s, &at, &spec->width);
  take(",_", &spec->grouping);
  if (take(".", &c) && !TakeNumber(s, &at, &spec->precision)) {
    rendering.Fail("format: a precision is missing");
  }
  take("bcdeEfFgGnosxX%", &spec->type);
  if (at != s.size()) {
    rendering.Fail(absl::StrCat("format: got specification '", Abseil(s), "'"));
  }
  if (spec->width > kMostWidth || spec->precision > kMostDigits) {
    rendering.Fail(absl::StrCat("format: a width is over ", kMostWidth,
                                " or a precision over ", kMostDigits));
  }
  return rendering.ok();
}

std::string InBase(uint64_t value, int base, bool upper) {
  char digits[66];
  const std::to_chars_result end =
      std::to_chars(digits, digits + sizeof(digits), value, base);
  std::string text(digits, end.ptr);
  if (upper) absl::AsciiStrToUpper(&text);
  return text;
}

// The digits of |value|, as %e, %f and %g write them.
std::string RealDigits(double value, char type, int64_t precision,
                       bool alternate) {
  const char kind = absl::ascii_tolower(type);
  std::string text;
  if (std::isnan(value) || std::isinf(value)) {
    text = std::isnan(value) ? "nan" : "inf";
  } else {
    char digits[700];
    const auto format = kind == 'f'   ? std::chars_format::fixed
                        : kind == 'e' ? std::chars_format::scientific
                                      : std::chars_format::general;
    const int64_t places =
        kind == 'g' ? std::max<int64_t>(precision, 1) : precision;
    const std::to_chars_result end =
        std::to_chars(digits, digits + sizeof(digits), std::fabs(value), format,
                      static_cast<int>(places));
    text.assign(digits, end.ptr);
    if (alternate && text.find('.') == std::string::npos) {
      text.insert(std::min(text.find('e'), text.size()), ".");
    }
  }
  if (absl::ascii_isupper(type)) absl::AsciiStrToUpper(&text);
  return text;
}

std::string Grouped(const std::string& digits, char mark, size_t each) {
  if (mark == 0) return digits;
  const size_t whole = std::min(digits.find_first_of(".eE"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % each == 0) out.push_back(mark);
    out.push_back(digits[i]);
  }
  return out + digits.substr(whole);
}

// Writes sign, prefix and digits; zeros or another fill may come between them.
void AppendNumber(Rendering& rendering, const Spec& spec, bool negative,
                  const std::string& prefix, const std::string& digits,
                  TextBuilder* out) {
  std::string sign = negative ? "-" : "";
  if (!negative && spec.sign != '-') sign.push_back(spec.sign);
  const std::string head = sign + prefix;
  if (spec.align == '=') {
    out->Append(head);
    AppendPadded(rendering, Text(digits), spec.fill, '>',
                 spec.width - static_cast<int64_t>(head.size()), out);
    return;
  }
  AppendPadded(rendering, Text(head + digits), spec.fill,
               spec.align == 0 ? '>' : spec.align, spec.width, out);
}

void AppendInteger(Rendering& rendering, const Spec& spec, int64_t value,
                   TextBuilder* out) {
  const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value)
                                       : static_cast<uint64_t>(value);
  const char kind = absl::ascii_tolower(spec.type);
  const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
  std::string prefix;
  if (spec.alternate && base != 10) prefix = {'0', spec.type};
  AppendNumber(rendering, spec, value < 0, prefix,
               Grouped(InBase(magnitude, base, spec.type == 'X'), spec.grouping,
                       base == 10 ? 3 : 4),
               out);
}

void AppendReal(Rendering& rendering, const Spec& spec, double value,
                TextBuilder* out) {
  std::string digits;
  if (spec.type == 0 && spec.precision < 0) {
    digits = FloatRepr(std::fabs(value));
  } else if (spec.type == 0) {
    digits = RealDigits(value, 'g', spec.precision, spec.alternate);
    if (std::isfinite(value) &&
        digits.find_first_of(".e") == std::string::npos) {
      digits += ".0";
    }
  } else {
    const int64_t precision = spec.precision < 0 ? 6 : spec.precision;
    digits = spec.type == '%'
                 ? RealDigits(value * 100, 'f', precision, spec.alternate) + "%"
                 : RealDigits(value, spec.type == 'n' ? 'g' : spec.type,
                              precision, spec.alternate);
  }
  AppendNumber(rendering, spec, std::signbit(value), "",
               Grouped(digits, spec.grouping, 3), out);
}

void AppendCharacter(Rendering& rendering, int64_t code_point,
                     TextBuilder* out) {
  if (code_point < 0 || code_point > 0x10FFFF ||
      (code_point >= 0xD800 && code_point < 0xE000)) {
    rendering.Fail("format: a number is no character");
    return;
  }
  std::string text;
  AppendUtf8(static_cast<char32_t>(code_point), &text);
  out->Append(text);
}

// Appends format(value, spec).
void AppendFormatted(Rendering& rendering, const Value& value, const Text& text,
                     TextBuilder* out) {
  Spec spec;
  if (!ParseSpec(rendering, text, &spec)) return;
  const std::optional<int64_t> integer = value.IfInteger();
  const std::optional<double> number = value.IfNumber();
  const bool real_type =
      spec.type != 0 &&
      std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  const bool plain = text.empty() || !number.has_value();
  if (!plain && integer.has_value() && !real_type) {
    if (spec.type == 'c') {
      TextBuilder one(rendering);
      AppendCharacter(rendering, *integer, &one);
      AppendPadded(rendering, one.text(), spec.fill,
                   spec.align == 0 ? '<' : spec.align, spec.width, out);
      return;
    }
    if (spec.type == 's') {
      rendering.Fail("format: got an integer for 's'");
      return;
    }
    AppendInteger(rendering, spec, *integer, out);
    return;
  }
  if (!plain) {
    if (spec.type != 0 && spec.type != 'n' && !real_type) {
      FailKind(rendering, "format", value, "an integer");
      return;
    }
    AppendReal(rendering, spec, *number, out);
    return;
  }
  if (!text.empty() && value.IfText() == nullptr) {
    FailKind(rendering, "format", value, "a string or a number");
    return;
  }
  if ((spec.type != 0 && spec.type != 's') || spec.align == '=') {
    rendering.Fail("format: the specification is of a number");
    return;
  }
  Text shown = Str(rendering, value);
  if (spec.precision >= 0) {
    size_t end = 0;
    for (int64_t i = 0; i < spec.precision && end < shown.size(); ++i) {
      end = CharacterEnd(shown.bytes(), end);
    }
    shown = shown.Cut(0, end);
  }
  AppendPadded(rendering, shown, spec.fill, spec.align == 0 ? '<' : spec.align,
               spec.width, out);
}

Text Repr(Rendering& rendering, const Value& value, bool ascii) {
  TextBuilder out(rendering);
  AppendRepr(rendering, value, &out, {.ascii = ascii});
  return out.TakeText();
}

// A field's value: the argument it names, then attributes and items of it.
Value FieldOf(Rendering& rendering, std::string_view field, const Args& args,
              size_t* next) {
  const size_t end = std::min(field.find_first_of(".["), field.size());
  const std::string_view name = field.substr(0, end);
  const auto no_argument = [&rendering]() -> Value {
    rendering.Fail("format: a field names no argument");
    return Undefined{};
  };
  Value value;
  if (name.empty() ||
      std::all_of(name.begin(), name.end(), absl::ascii_isdigit)) {
    size_t at = 0;
    int64_t index = 0;
    if (name.empty()) {
      index = static_cast<int64_t>((*next)++);
    } else {
      TakeNumber(name, &at, &index);
    }
    if (index >= static_cast<int64_t>(args.positional.size())) {
      return no_argument();
    }
    value = args.positional[static_cast<size_t>(index)];
  } else {
    const auto found =
        std::find_if(args.named.begin(), args.named.end(),
                     [name](const auto& named) { return named.first == name; });
    if (found == args.named.end()) return no_argument();
    value = found->second;
  }
  for (size_t at = end; at < field.size() && rendering.Step();) {
    const bool item = field[at] == '[';
    const size_t stop =
        item ? field.find(']', at)
             : std::min(field.find_first_of(".[", at + 1), field.size());
    if (stop == std::string_view::npos) {
      rendering.Fail("format: a bracket has no partner");
      break;
    }
    const std::string_view key = field.substr(at + 1, stop - at - 1);
    size_t digits = 0;
    int64_t number = 0;
    const bool is_number =
        item && TakeNumber(key, &digits, &number) && digits == key.size();
    value = GetItem(rendering, value,
                    is_number ? Value(number) : MakeString(rendering, key));
    at = item ? stop + 1 : stop;
  }
  return value;
}

// The end of the field that begins behind a brace at `begin`: the closing brace
// that is no part of a field within its specification.
size_t FieldEnd(std::string_view bytes, size_t begin) {
  int depth = 1;
  for (size_t at = begin; at < bytes.size(); ++at) {
    if (bytes[at] == '{') ++depth;
    if (bytes[at] == '}' && --depth == 0) return at;
  }
  return std::string_view::npos;
}

Text Braces(Rendering& rendering, const Text& pattern, const Args& args,
            size_t* next, int depth) {
  const std::string_view bytes = pattern.bytes();
  TextBuilder out(rendering);
  if (depth > 2) rendering.Fail("format: fields are nested too deeply");
  for (size_t at = 0; at < bytes.size() && rendering.Step();) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.Append(pattern, at, brace);
    if (brace == bytes.size()) break;
    if (bytes.substr(brace, 2) == std::string(2, bytes[brace])) {
      out.Append(pattern, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const size_t close = FieldEnd(bytes, brace + 1);
    if (bytes[brace] == '}' || close == std::string_view::npos) {
      rendering.Fail("format: a brace has no partner");
      break;
    }
    const std::string_view field = bytes.substr(brace + 1, close - brace - 1);
    const size_t colon = std::min(field.find(':'), field.size());
    const size_t mark = std::min(field.substr(0, colon).find('!'), colon);
    Value value = FieldOf(rendering, field.substr(0, mark), args, next);
    const std::string_view conversion = field.substr(mark, colon - mark);
    if (conversion == "!r" || conversion == "!a") {
      value = MakeString(rendering, Repr(rendering, value, conversion == "!a"));
    } else if (conversion == "!s") {
      value = MakeString(rendering, Str(rendering, value));
    } else if (!conversion.empty()) {
      rendering.Fail("format: got an unknown conversion");
    }
    Text spec;
    if (colon < field.size()) {
      spec = Braces(rendering, pattern.Cut(brace + 1 + colon + 1, close), args,
                    next, depth + 1);
    }
    if (!rendering.ok()) break;
    AppendFormatted(rendering, value, spec, &out);
    at = close + 1;
  }
  return out.TakeText();
}

// The values that a pattern with % takes one after the other.
class PercentValues {
 public:
  PercentValues(Rendering& rendering, const Value& values)
      : rendering_(rendering), values_(values) {
    const List* const list = values.IfRef<List>();
    tuple_ = list != nullptr && list->tuple ? list : nullptr;
  }

  Value Next() {
    const size_t size = tuple_ != nullptr ? tuple_->items.size() : 1;
    if (next_ == size) {
      rendering_.Fail("%: there are too few values");
      return Undefined{};
    }
    ++next_;
    return tuple_ != nullptr ? tuple_->items[next_ - 1] : values_;
  }
  Value Named(std::string_view name) {
    const Dict* const dict = values_.IfRef<Dict>();
    const Value* const found =
        dict == nullptr ? nullptr : Find(rendering_, *dict, name);
    if (found == nullptr) {
      rendering_.Fail(
          absl::StrCat("%: there is no value '", Abseil(name), "'"));
      return Undefined{};
    }
    named_ = true;
    return *found;
  }
  int64_t NextInteger() {
    const Value value = Next();
    const std::optional<int64_t> integer = value.IfInteger();
    if (!integer.has_value()) rendering_.Fail("%: '*' needs an integer");
    return integer.value_or(0);
  }
  // Python raises if values are left, but for a dict or a list.
  void End() {
    const bool left = tuple_ != nullptr
                          ? next_ < tuple_->items.size()
                          : next_ == 0 && !named_ &&
                                values_.IfRef<Dict>() == nullptr &&
                                values_.IfRef<List>() == nullptr;
    if (left) rendering_.Fail("%: there are too many values");
  }

 private:
  Rendering& rendering_;
  const Value& values_;
  const List* tuple_ = nullptr;  // null: a single value
  size_t next_ = 0;
  bool named_ = false;
};

void AppendConversion(Rendering& rendering, char type, Spec spec,
                      const Value& value, TextBuilder* out) {
  const std::optional<double> number = value.IfNumber();
  const char left = spec.align;  // '<' or 0
  if (std::string_view("srac").find(type) != std::string_view::npos) {
    TextBuilder shown(rendering);
    if (type == 'c' && value.IfInteger().has_value()) {
      AppendCharacter(rendering, *value.IfInteger(), &shown);
    } else if (type == 's' || type == 'c') {
      shown.Append(Str(rendering, value));
      if (type == 'c' && (value.IfText() == nullptr ||
                          CountCharacters(shown.text().bytes()) != 1)) {
        rendering.Fail("%: %c needs one character");
      }
    } else {
      AppendRepr(rendering, value, &shown, {.ascii = type == 'a'});
    }
    size_t end = shown.text().size();
    if (spec.precision >= 0) {
      end = 0;
      for (int64_t i = 0; i < spec.precision && end < shown.text().size();
           ++i) {
        end = CharacterEnd(shown.text().bytes(), end);
      }
    }
    AppendPadded(rendering, shown.text().Cut(0, end), Text(" "),
                 left == '<' ? '<' : '>', spec.width, out);
    return;
  }
  if (!number.has_value()) {
    FailKind(rendering, absl::StrCat("%", std::string(1, type)), value,
             "a number");
    return;
  }
  if (spec.align == 0 && spec.fill.bytes() == "0") spec.align = '=';
  if (left == '<') spec.fill = Text(" ");
  if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
    spec.type = type;
    AppendReal(rendering, spec, *number, out);
    return;
  }
  const bool whole = type == 'd' || type == 'i' || type == 'u';
  if (!whole && !value.IfInteger().has_value()) {
    FailKind(rendering, absl::StrCat("%", std::string(1, type)), value,
             "an integer");
    return;
  }
  if (!(std::fabs(*number) < 9.2e18)) {
    rendering.Fail("an integer is out of range");
    return;
  }
  const int64_t integer =
      value.IfInteger().value_or(static_cast<int64_t>(*number));
  const uint64_t magnitude = integer < 0 ? 0 - static_cast<uint64_t>(integer)
                                         : static_cast<uint64_t>(integer);
  std::string digits = InBase(magnitude,
                              whole         ? 10
                              : type == 'o' ? 8
                                            : 16,
                              type == 'X');
  while (static_cast<int64_t>(digits.size()) < spec.precision) {
    digits.insert(0, 1, '0');
  }
  AppendNumber(rendering, spec, integer < 0,
               spec.alternate && !whole ? std::string{'0', type} : "", digits,
               out);
}

}  // namespace

void AppendPadded(Rendering& rendering, const Text& text, const Text& fill,
                  char align, int64_t width, TextBuilder* out) {
  const auto size = static_cast<int64_t>(CountCharacters(text.bytes()));
  if (width > kMostWidth) {
    rendering.Fail(absl::StrCat("a width is over ", kMostWidth));
    return;
  }
  const int64_t missing = std::max<int64_t>(width - size, 0);
  const int64_t before = align == '>'   ? missing
                         : align == '^' ? missing / 2
                                        : 0;
  for (int64_t i = 0; i < before && rendering.Step(); ++i) out->Append(fill);
  out->Append(text);
  for (int64_t i = before; i < missing && rendering.Step(); ++i) {
    out->Append(fill);
  }
}

Value FormatBraces(Rendering& rendering, const Text& pattern,
                   const Args& args) {
  size_t next = 0;
  return MakeString(rendering, Braces(rendering, pattern, args, &next, 1));
}

Value FormatPercent(Rendering& rendering, const Text& pattern,
                    const Value& values) {
  const std::string_view bytes = pattern.bytes();
  PercentValues given(rendering, values);
  TextBuilder out(rendering);
  for (size_t at = 0; at < bytes.size() && rendering.Step();) {
    const size_t mark = std::min(bytes.find('%', at), bytes.size());
    out.Append(pattern, at, mark);
    if (mark == bytes.size()) break;
    at = mark + 1;
    std::optional<Value> named;
    if (at < bytes.size() && bytes[at] == '(') {
      const size_t close = bytes.find(')', at);
      if (close == std::string_view::npos) {
        rendering.Fail("%: a parenthesis has no partner");
        break;
      }
      named = given.Named(bytes.substr(at + 1, close - at - 1));
      at = close + 1;
    }
    Spec spec;
    for (; at < bytes.size(); ++at) {
      if (bytes[at] == '-') {
        spec.align = '<';
      } else if (bytes[at] == '0') {
        spec.fill = Text("0");
      } else if (bytes[at] == '+' || (bytes[at] == ' ' && spec.sign != '+')) {
        spec.sign = bytes[at];
      } else if (bytes[at] == '#') {
        spec.alternate = true;
      } else if (bytes[at] != ' ') {
        break;
      }
    }
    const auto take_size = [&](int64_t* size) {
      if (at < bytes.size() && bytes[at] == '*') {
        *size = given.NextInteger();
        ++at;
      } else {
        TakeNumber(bytes, &at, size);
      }
    };
    take_size(&spec.width);
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -std::max(spec.width, -kMostWidth - 1);
    }
    if (at < bytes.size() && bytes[at] == '.') {
      ++at;
      spec.precision = 0;
      take_size(&spec.precision);
      spec.precision = std::max<int64_t>(spec.precision, 0);
    }
    while (at < bytes.size() &&
           std::string_view("hlL").find(bytes[at]) != std::string_view::npos) {
      ++at;
    }
    if (spec.precision > kMostDigits || spec.width > kMostWidth ||
        at == bytes.size() ||
        std::string_view("diouxXeEfFgGcrsa%").find(bytes[at]) ==
            std::string_view::npos) {
      rendering.Fail("%: got an incomplete or unknown conversion");
      break;
    }
    const char type = bytes[at++];
    if (type == '%') {
      out.Append("%");
      continue;
    }
    const Value value = named.has_value() ? *named : given.Next();
    if (!rendering.ok()) break;
    AppendConversion(rendering, type, spec, value, &out);
  }
  if (rendering.ok()) given.End();
  return MakeString(rendering, out.TakeText());
}

}  // namespace tiercel::jinja
