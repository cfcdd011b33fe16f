#include "lib/template/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "lib/template/letter_case.h"
#include "lib/text/utf8.h"

namespace tiercel::jinja {
namespace {

std::string Hex(const char* prefix, int digits, uint32_t value) {
  char text[16];
  const int size =
      std::snprintf(text, sizeof(text), "%s%0*x", prefix, digits, value);
  return std::string(text, static_cast<size_t>(size));
}

// Appends `text` with each byte that `escape` maps replaced. A replacement has
// the origin of its byte; an empty one leaves the byte as it is.
template <typename Escape>
void AppendEscaped(const Text& text, Escape escape, TextBuilder* out) {
  text.ForEachRun([&](std::string_view rendering, Origin origin) {
    size_t written = 0;
    for (size_t i = 0; i < rendering.size(); ++i) {
      const std::string replacement = escape(rendering[i]);
      if (replacement.empty()) continue;
      out->Append(rendering.substr(written, i - written), origin);
      out->Append(replacement, origin);
      written = i + 1;
    }
    out->Append(rendering.substr(written), origin);
  });
}

// Returns how Python's repr spells the character at `at`; empty: as it
// is.
std::string ReprOf(std::string_view text, size_t at, char quote, bool ascii) {
  switch (const char first = text[at]) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\\':
      return "\\\\";
    default:
      if (first == quote) return {'\\', quote};
  }
  const char32_t c = Utf8At(text, at).code_point;
  if (c == kNoCodePoint) return {};
  if ((c < 0x80 || !ascii) && ClassAt(text, at).printable) return {};
  return c < 0x100     ? Hex("\\x", 2, c)
         : c < 0x10000 ? Hex("\\u", 4, c)
                       : Hex("\\U", 8, c);
}

void AppendStringRepr(const Text& text, bool ascii, TextBuilder* out) {
  const std::string_view bytes = text.bytes();
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  const bool has_double = bytes.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  const std::string_view mark(&quote, 1);
  out->Append(mark);
  size_t written = 0;
  for (size_t at = 0, end = 0; at < bytes.size(); at = end) {
    end = CharacterEnd(bytes, at);
    const std::string spelled = ReprOf(bytes, at, quote, ascii);
    if (spelled.empty()) continue;
    out->Append(text, written, at);
    out->Append(spelled, text.OriginAt(at));
    written = end;
  }
  out->Append(text, written, bytes.size());
  out->Append(mark);
}

void AppendListRepr(Rendering& rendering, const List& list,
                    const ReprStyle& style, TextBuilder* out) {
  out->Append(list.tuple ? "(" : "[");
  for (size_t i = 0; i < list.items.size() && rendering.ok(); ++i) {
    if (i > 0) out->Append(", ");
    AppendRepr(rendering, list.items[i], out, style);
  }
  if (list.tuple && list.items.size() == 1) out->Append(",");
  out->Append(list.tuple ? ")" : "]");
}

// Returns whether a key comes before another in pprint: as < has it, or else
// by the names of their types in Python.
bool KeyLess(Rendering& rendering, const Value& a, const Value& b) {
  const auto kind = [](const Value& key) {
    return key.Is<None>()               ? 0
           : key.IfNumber().has_value() ? 1
           : key.IfText() != nullptr    ? 2
                                        : 3;
  };
  if (kind(a) != kind(b)) return kind(a) < kind(b);
  return kind(a) != 0 && Less(rendering, a, b);
}

void AppendDictRepr(Rendering& rendering, const Dict& dict,
                    const ReprStyle& style, TextBuilder* out) {
  Charge charge(rendering);
  if (!charge.Grow(dict.items.size() * sizeof(void*))) return;
  std::vector<const Dict::Item*> items;
  for (const Dict::Item& item : dict.items) items.push_back(&item);
  if (style.sorted) {
    std::stable_sort(items.begin(), items.end(),
                     [&](const Dict::Item* a, const Dict::Item* b) {
                       return KeyLess(rendering, a->first, b->first);
                     });
  }
  out->Append("{");
  for (size_t i = 0; i < items.size() && rendering.ok(); ++i) {
    if (i > 0) out->Append(", ");
    AppendRepr(rendering, items[i]->first, out, style);
    out->Append(": ");
    AppendRepr(rendering, items[i]->second, out, style);
  }
  out->Append("}");
}

class JsonWriter {
 public:
  JsonWriter(Rendering& rendering, const JsonStyle& style, TextBuilder* out)
      : rendering_(rendering), style_(style), out_(out) {}

  void Write(const Value& value) {
    if (!rendering_.Step()) return;
    if (value.Is<None>()) {
      out_->Append("null");
    } else if (const bool* boolean = value.If<bool>()) {
      out_->Append(*boolean ? "true" : "false");
    } else if (const int64_t* integer = value.If<int64_t>()) {
      out_->Append(std::to_string(*integer));
    } else if (const double* real = value.If<double>()) {
      out_->Append(JsonFloat(*real));
    } else if (const Text* text = value.IfText()) {
      WriteString(*text);
    } else if (const List* list = value.IfRef<List>()) {
      WriteItems('[', ']', list->items,
                 [this](const Value& item) { Write(item); });
    } else if (const Dict* dict = value.IfRef<Dict>()) {
      WriteDict(*dict);
    } else {
      rendering_.Fail(absl::StrCat("a ", Abseil(KindOf(value)), " is no JSON"));
    }
  }

 private:
  static std::string JsonFloat(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return FloatRepr(value);
  }

  template <typename Items, typename WriteItem>
  void WriteItems(char open, char close, const Items& items,
                  WriteItem write_item) {
    out_->Append(std::string_view(&open, 1));
    ++level_;
    for (size_t i = 0; i < items.size() && rendering_.ok(); ++i) {
      if (i > 0) out_->Append(style_.item_separator);
      NewLine();
      write_item(items[i]);
    }
    --level_;
    if (!items.empty()) NewLine();
    out_->Append(std::string_view(&close, 1));
  }

  void WriteDict(const Dict& dict) {
    std::vector<const Dict::Item*> items;
    for (const Dict::Item& item : dict.items) items.push_back(&item);
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(),
                       [](const Dict::Item* a, const Dict::Item* b) {
                         return KeyOf(*a) < KeyOf(*b);
                       });
    }
    WriteItems('{', '}', items, [this](const Dict::Item* item) {
      WriteKey(item->first);
      out_->Append(style_.key_separator);
      Write(item->second);
    });
  }

  static std::string_view KeyOf(const Dict::Item& item) {
    const Text* text = item.first.IfText();
    return text == nullptr ? std::string_view() : text->bytes();
  }

  void WriteKey(const Value& key) {
    if (const Text* text = key.IfText()) {
      WriteString(*text);
    } else if (key.IfNumber().has_value() || key.Is<None>()) {
      out_->Append("\"");
      Write(key);
      out_->Append("\"");
    } else {
      rendering_.Fail(
          absl::StrCat("a ", Abseil(KindOf(key)), " is no JSON key"));
    }
  }

  void WriteString(const Text& text) {
    out_->Append("\"");
    if (style_.ensure_ascii) {
      WriteAscii(text);
    } else {
      AppendEscaped(text, EscapeByte, out_);
    }
    out_->Append("\"");
  }

  static std::string EscapeByte(char byte) {
    constexpr std::string_view kBytes = "\"\\\n\r\t\b\f";
    constexpr std::string_view kLetters = "\"\\nrtbf";
    if (const size_t i = kBytes.find(byte); i != std::string_view::npos) {
      return {'\\', kLetters[i]};
    }
    if (static_cast<unsigned char>(byte) < 0x20) {
      return Hex("\\u", 4, static_cast<unsigned char>(byte));
    }
    return {};
  }

  void WriteAscii(const Text& text) {
    for (size_t begin = 0; begin < text.size() && rendering_.ok();) {
      const std::string_view bytes = text.bytes();
      const Origin origin = text.OriginAt(begin);
      const auto lead = static_cast<unsigned char>(bytes[begin]);
      if (lead < 0x80) {
        const std::string escape = EscapeByte(bytes[begin]);
        out_->Append(escape.empty() ? bytes.substr(begin, 1) : escape, origin);
        ++begin;
        continue;
      }
      const size_t end = CharacterEnd(bytes, begin);
      uint32_t code_point =
          lead & (0xFFu >> std::min<size_t>(end - begin + 1, 7));
      for (size_t i = begin + 1; i < end; ++i) {
        code_point =
            code_point << 6 | (static_cast<unsigned char>(bytes[i]) & 0x3F);
      }
      if (code_point >= 0x10000) {
        const uint32_t rest = (code_point - 0x10000) & 0xFFFFF;
        out_->Append(Hex("\\u", 4, 0xD800 | rest >> 10), origin);
        out_->Append(Hex("\\u", 4, 0xDC00 | (rest & 0x3FF)), origin);
      } else {
        out_->Append(Hex("\\u", 4, code_point), origin);
      }
      begin = end;
    }
  }

  void NewLine() {
    if (!style_.multiline) return;
    out_->Append("\n");
    for (int i = 0; i < level_ && rendering_.ok(); ++i)
      out_->Append(style_.indent);
  }

  Rendering& rendering_;
  const JsonStyle& style_;
  TextBuilder* const out_;
  int level_ = 0;
};

}  // namespace

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const std::to_chars_result end = std::to_chars(
      buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view scientific(buffer,
                                    static_cast<size_t>(end.ptr - buffer));
  const size_t mark = scientific.find('e');
  int exponent = 0;
  const size_t sign = scientific[mark + 1] == '+' ? 1 : 0;
  std::from_chars(buffer + mark + 1 + sign, end.ptr, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  const std::to_chars_result fixed = std::to_chars(
      buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  std::string text(buffer, fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

void AppendRepr(Rendering& rendering, const Value& value, TextBuilder* out,
                const ReprStyle& style) {
  if (!rendering.Step()) return;
  if (value.IsUndefined()) {
    out->Append("Undefined");
  } else if (value.Is<None>()) {
    out->Append("None");
  } else if (const bool* boolean = value.If<bool>()) {
    out->Append(*boolean ? "True" : "False");
  } else if (const int64_t* integer = value.If<int64_t>()) {
    out->Append(std::to_string(*integer));
  } else if (const double* real = value.If<double>()) {
    out->Append(FloatRepr(*real));
  } else if (const Text* text = value.IfText()) {
    AppendStringRepr(*text, style.ascii, out);
  } else if (const List* list = value.IfRef<List>()) {
    AppendListRepr(rendering, *list, style, out);
  } else if (const Dict* dict = value.IfRef<Dict>()) {
    AppendDictRepr(rendering, *dict, style, out);
  } else {
    rendering.Fail(
        absl::StrCat("a ", Abseil(KindOf(value)), " cannot be written"));
  }
}

void AppendStr(Rendering& rendering, const Value& value, TextBuilder* out) {
  if (value.IsUndefined()) return;
  if (const Text* text = value.IfText()) {
    out->Append(*text);
  } else {
    AppendRepr(rendering, value, out);
  }
}

Text Str(Rendering& rendering, const Value& value) {
  if (const Text* text = value.IfText()) return *text;
  TextBuilder out(rendering);
  AppendStr(rendering, value, &out);
  return out.TakeText();
}

void AppendJson(Rendering& rendering, const Value& value,
                const JsonStyle& style, TextBuilder* out) {
  JsonWriter(rendering, style, out).Write(value);
}

}  // namespace tiercel::jinja
