// The filters of `value | filter` for strings, numbers and any value.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "lib/template/builtins.h"
#include "lib/template/format.h"
#include "lib/template/letter_case.h"
#include "lib/template/numbers.h"

namespace tiercel::jinja {
namespace {

// --- strings

Value CallStringMethod(Rendering& rendering, const Value& input,
                       const std::string& method, const Args& args) {
  const Value string = MakeString(rendering, Str(rendering, input));
  const Value function = GetAttribute(rendering, string, method);
  return rendering.ok() ? function.IfRef<Function>()->call(args) : Undefined{};
}

Value ReplaceFilter(Rendering& rendering, const Value& input,
                    const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "replace", args, {"old", "new", "count"}, 2);
  return Replace(rendering, Str(rendering, input), Str(rendering, bound[0]),
                 Str(rendering, bound[1]), bound[2].IfInteger().value_or(-1));
}

Value IndentFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "indent", args, {"width", "first", "blank"});
  const Text* text = input.IfText();
  if (text == nullptr) {
    FailKind(rendering, "indent", input, "a string");
    return Undefined{};
  }
  TextBuilder width(rendering);
  if (const Text* given = bound[0].IfText()) {
    width.Append(*given);
  } else {
    const int64_t spaces =
        bound[0].IsUndefined() ? 4 : bound[0].IfInteger().value_or(0);
    for (int64_t i = 0; i < spaces && rendering.Step(); ++i) width.Append(" ");
  }
  TextBuilder lines(rendering);
  lines.Append(*text);
  lines.Append("\n");
  const std::vector<Value> split = SplitLines(rendering, lines.text());
  TextBuilder out(rendering);
  for (size_t i = 0; i < split.size() && rendering.ok(); ++i) {
    const Text& line = *split[i].IfText();
    if (i > 0) out.Append("\n");
    const bool indents =
        i == 0 ? Truth(bound[1]) : Truth(bound[2]) || !line.empty();
    if (indents) out.Append(width.text());
    out.Append(line);
  }
  return MakeString(rendering, out.TakeText());
}

Value EscapeFilter(Rendering& rendering, const Value& input, const Args&) {
  return MakeString(rendering, Escaped(rendering, Str(rendering, input)));
}

Value ToJson(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "tojson", args,
           {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = Truth(bound[0]);
  style.sort_keys = Truth(bound[3]);
  if (const Text* indent = bound[1].IfText()) {
    style.multiline = true;
    style.indent = *indent;
  } else if (const std::optional<int64_t> spaces = bound[1].IfInteger()) {
    style.multiline = true;
    if (*spaces > 64) rendering.Fail("tojson: the indent is more than 64");
    style.indent = Text(
        std::string(rendering.ok() ? std::max<int64_t>(*spaces, 0) : 0, ' '));
  }
  style.item_separator = Text(style.multiline ? "," : ", ");
  style.key_separator = Text(": ");
  if (const List* separators = bound[2].IfRef<List>()) {
    if (separators->items.size() != 2) {
      rendering.Fail("tojson: needs two separators");
      return Undefined{};
    }
    style.item_separator = Str(rendering, separators->items[0]);
    style.key_separator = Str(rendering, separators->items[1]);
  }
  TextBuilder out(rendering);
  AppendJson(rendering, input, style, &out);
  return MakeString(rendering, out.TakeText());
}

// --- numbers

Value IntFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "int", args, {"default", "base"});
  const Value absent = bound[0].IsUndefined() ? Value(int64_t{0}) : bound[0];
  if (const std::optional<int64_t> integer = input.IfInteger()) return *integer;
  if (const Text* text = input.IfText()) {
    const int64_t base = bound[1].IfInteger().value_or(10);
    const std::optional<int64_t> integer = ReadInteger(rendering, *text, base);
    if (integer.has_value()) return *integer;
    const std::optional<double> real = ReadReal(*text);
    if (!real.has_value() || !std::isfinite(*real)) return absent;
    return Truncated(rendering, *real);
  }
  if (const double* real = input.If<double>()) {
    return std::isnan(*real) ? absent : Truncated(rendering, *real);
  }
  if (input.IsUndefined()) FailKind(rendering, "int", input, "a number");
  return absent;
}

Value FloatFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound = Bind(rendering, "float", args, {"default"});
  std::optional<double> value = input.IfNumber();
  if (const Text* text = input.IfText()) value = ReadReal(*text);
  if (value.has_value()) return *value;
  if (input.IsUndefined()) FailKind(rendering, "float", input, "a number");
  return bound[0].IsUndefined() ? Value(0.0) : bound[0];
}

Value AbsFilter(Rendering& rendering, const Value& input, const Args&) {
  if (const std::optional<int64_t> integer = input.IfInteger()) {
    if (*integer == INT64_MIN) rendering.Fail("an integer is out of range");
    return *integer < 0 && rendering.ok() ? -*integer : *integer;
  }
  if (const double* real = input.If<double>()) return std::fabs(*real);
  FailKind(rendering, "abs", input, "a number");
  return Undefined{};
}

// Rounds to a multiple of `unit`, halves to an even one.
int64_t RoundTo(int64_t value, int64_t unit) {
  int64_t count = value / unit;
  int64_t rest = value % unit;
  if (rest < 0) {
    rest += unit;
    --count;
  }
  if (rest > unit - rest || (rest == unit - rest && count % 2 != 0)) ++count;
  return count * unit;
}

// Rounds as Python does: to the decimal nearest to the exact binary value.
double RoundAt(double value, int64_t precision) {
  if (precision < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    return std::nearbyint(value / unit) * unit;
  }
  char digits[400];
  const std::to_chars_result end =
      std::to_chars(digits, digits + sizeof(digits), value,
                    std::chars_format::fixed, static_cast<int>(precision));
  double rounded = value;
  std::from_chars(digits, end.ptr, rounded);
  return rounded;
}

Value RoundFilter(Rendering& rendering, const Value& input, const Args& args) {
  constexpr int64_t kMost = 15;
  const std::vector<Value> bound =
      Bind(rendering, "round", args, {"precision", "method"});
  const std::optional<double> value = input.IfNumber();
  const int64_t precision = bound[0].IfInteger().value_or(0);
  if (!value.has_value() || precision < -kMost || precision > kMost) {
    rendering.Fail("round: needs a number and a precision from -15 to 15");
    return Undefined{};
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const Text method = Str(rendering, bound[1]);
  if (method.bytes() == "ceil") return std::ceil(*value * scale) / scale;
  if (method.bytes() == "floor") return std::floor(*value * scale) / scale;
  const std::optional<int64_t> integer = input.IfInteger();
  if (!integer.has_value()) return RoundAt(*value, precision);
  int64_t unit = 1;
  for (int64_t i = precision; i < 0; ++i) unit *= 10;
  if (*integer > INT64_MAX - unit || *integer < INT64_MIN + unit) {
    rendering.Fail("an integer is out of range");
    return Undefined{};
  }
  return RoundTo(*integer, unit);
}

// --- the rest

Value DefaultFilter(Rendering& rendering, const Value& input,
                    const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "default", args, {"default_value", "boolean"});
  const bool takes = input.IsUndefined() || (Truth(bound[1]) && !Truth(input));
  if (!takes) return input;
  const bool given = !args.positional.empty() || !args.named.empty();
  return given && !bound[0].IsUndefined() ? bound[0]
                                          : MakeString(rendering, "");
}

Value StringFilter(Rendering& rendering, const Value& input, const Args&) {
  return MakeString(rendering, Str(rendering, input));
}

Value AttrFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound = Bind(rendering, "attr", args, {"name"}, 1);
  return input.IfRef<Dict>() == nullptr ? GetItem(rendering, input, bound[0])
                                        : Undefined{};
}

constexpr BuiltinEntry<Filter> kFilters[] = {
    {"abs", AbsFilter},
    {"attr", AttrFilter},
    {"capitalize",
     [](Rendering& rendering, const Value& v, const Args& args) {
       return CallStringMethod(rendering, v, "capitalize", args);
     }},
    {"d", DefaultFilter},
    {"default", DefaultFilter},
    {"e", EscapeFilter},
    {"escape", EscapeFilter},
    {"float", FloatFilter},
    {"indent", IndentFilter},
    {"int", IntFilter},
    {"forceescape", EscapeFilter},
    {"lower",
     [](Rendering& rendering, const Value& v, const Args&) {
       return WithCase(rendering, Str(rendering, v), Case::kLower);
     }},
    {"replace", ReplaceFilter},
    {"round", RoundFilter},
    {"safe", StringFilter},
    {"string", StringFilter},
    {"title",
     [](Rendering& rendering, const Value& v, const Args&) {
       return WithCase(rendering, Str(rendering, v), Case::kTitleWords);
     }},
    {"tojson", ToJson},
    {"trim",
     [](Rendering& rendering, const Value& v, const Args& args) {
       return CallStringMethod(rendering, v, "strip", args);
     }},
    {"upper",
     [](Rendering& rendering, const Value& v, const Args&) {
       return WithCase(rendering, Str(rendering, v), Case::kUpper);
     }},
};

}  // namespace

Filter FindFilter(std::string_view name) {
  const Filter own = FindIn(kFilters, name);
  if (own != nullptr) return own;
  const Filter of_text = FindTextFilter(name);
  return of_text != nullptr ? of_text : FindListFilter(name);
}

}  // namespace tiercel::jinja
