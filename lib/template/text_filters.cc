// The filters that lay out, cut or escape text, or write it for the web.

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "lib/template/builtins.h"
#include "lib/template/format.h"
#include "lib/template/letter_case.h"
#include "lib/template/printf.h"

namespace tiercel::jinja {
namespace {

int64_t NumberOr(const Value& value, int64_t absent) {
  return value.IfInteger().value_or(absent);
}

Value CenterFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound = Bind(rendering, "center", args, {"width"});
  return Centered(rendering, Str(rendering, input), NumberOr(bound[0], 80),
                  Text(" "));
}

Value FormatFilter(Rendering& rendering, const Value& input, const Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    rendering.Fail("format: takes positional or named arguments, not both");
    return Undefined{};
  }
  Value values = MakeList(rendering, args.positional, /*tuple=*/true);
  if (!args.named.empty()) {
    std::vector<Dict::Item> items;
    for (const auto& [name, value] : args.named) {
      items.emplace_back(MakeString(rendering, name), value);
    }
    values = MakeDict(rendering, std::move(items));
  }
  return FormatPercent(rendering, Str(rendering, input), values);
}

Value PprintFilter(Rendering& rendering, const Value& input, const Args&) {
  TextBuilder out(rendering);
  AppendRepr(rendering, input, &out, {.sorted = true});
  return MakeString(rendering, out.TakeText());
}

Value WordCountFilter(Rendering& rendering, const Value& input, const Args&) {
  const Text text = Str(rendering, input);
  rendering.StepBytes(text.size());
  int64_t words = 0;
  bool within = false;
  for (size_t at = 0; at < text.size();) {
    const CharacterClass of = ClassAt(text.bytes(), at);
    const bool part = of.letter || of.numeric || text.bytes()[at] == '_';
    words += part && !within;
    within = part;
    at = CharacterEnd(text.bytes(), at);
  }
  return words;
}

// The offset behind `count` characters of `text` from `begin` on.
size_t Ahead(std::string_view text, size_t begin, int64_t count) {
  for (; count > 0 && begin < text.size(); --count) {
    begin = CharacterEnd(text, begin);
  }
  return begin;
}

Value TruncateFilter(Rendering& rendering, const Value& input,
                     const Args& args) {
  const std::vector<Value> bound = Bind(
      rendering, "truncate", args, {"length", "killwords", "end", "leeway"});
  const Text text = Str(rendering, input);
  const int64_t length = NumberOr(bound[0], 255);
  const Text end =
      bound[2].IsUndefined() ? Text("...") : Str(rendering, bound[2]);
  const int64_t leeway = NumberOr(bound[3], 5);
  const auto end_size = static_cast<int64_t>(CountCharacters(end.bytes()));
  if (length < end_size || leeway < 0) {
    rendering.Fail("truncate: the length is less than that of the end");
    return Undefined{};
  }
  rendering.StepBytes(text.size());
  if (static_cast<int64_t>(CountCharacters(text.bytes())) <= length + leeway) {
    return MakeString(rendering, text);
  }
  size_t kept = Ahead(text.bytes(), 0, length - end_size);
  if (!Truth(bound[1])) {
    const size_t space = text.bytes().substr(0, kept).rfind(' ');
    if (space != std::string_view::npos) kept = space;
  }
  TextBuilder out(rendering);
  out.Append(text, 0, kept);
  out.Append(end);
  return MakeString(rendering, out.TakeText());
}

// A word of a line, or the space between two.
struct Chunk {
  size_t begin;
  size_t end;
  bool space;
  int64_t width;
};

// Words and spaces; with `hyphens` a word may end behind one between letters.
std::vector<Chunk> ChunksOf(const Text& line, bool hyphens) {
  std::vector<Chunk> chunks;
  const std::string_view bytes = line.bytes();
  const auto is_space = [&](size_t at) {
    return IsSpace(bytes.substr(at, CharacterEnd(bytes, at) - at));
  };
  for (size_t at = 0; at < bytes.size();) {
    const size_t begin = at;
    const bool space = is_space(at);
    while (at < bytes.size() && is_space(at) == space) {
      const size_t next = CharacterEnd(bytes, at);
      const bool breaks = hyphens && bytes[at] == '-' && at > begin &&
                          next < bytes.size() &&
                          ClassAt(bytes, CharacterBegin(bytes, at)).letter &&
                          ClassAt(bytes, next).letter;
      at = next;
      if (breaks) break;
    }
    chunks.push_back({begin, at, space,
                      static_cast<int64_t>(
                          CountCharacters(bytes.substr(begin, at - begin)))});
  }
  return chunks;
}

// textwrap.wrap of one line, without its first and last spaces but for those
// that begin the line.
std::vector<Text> WrapLine(const Text& line, int64_t width, bool breaks_words,
                           bool hyphens) {
  std::vector<Chunk> chunks = ChunksOf(line, hyphens);
  std::reverse(chunks.begin(), chunks.end());
  std::vector<Text> lines;
  while (!chunks.empty()) {
    if (chunks.back().space && !lines.empty()) chunks.pop_back();
    std::vector<Chunk> taken;
    int64_t used = 0;
    while (!chunks.empty() && used + chunks.back().width <= width) {
      used += chunks.back().width;
      taken.push_back(chunks.back());
      chunks.pop_back();
    }
    if (!chunks.empty() && chunks.back().width > width) {
      Chunk& word = chunks.back();
      if (breaks_words) {
        const int64_t room = std::max<int64_t>(width - used, 1);
        size_t cut = Ahead(line.bytes(), word.begin, room);
        // A hyphen within the room is the better place.
        const std::string_view first =
            line.bytes().substr(word.begin, cut - word.begin);
        const size_t hyphen = hyphens ? first.rfind('-') : std::string::npos;
        if (hyphen != std::string_view::npos && hyphen > 0 &&
            first.find_first_not_of('-') < hyphen) {
          cut = word.begin + hyphen + 1;
        }
        taken.push_back({word.begin, cut, false, 0});
        word.begin = cut;
        word.width = static_cast<int64_t>(
            CountCharacters(line.bytes().substr(cut, word.end - cut)));
      } else if (taken.empty()) {
        taken.push_back(word);
        chunks.pop_back();
      }
    }
    if (!taken.empty() && taken.back().space) taken.pop_back();
    if (taken.empty()) continue;
    lines.push_back(line.Cut(taken.front().begin, taken.back().end));
  }
  return lines;
}

Value WordWrapFilter(Rendering& rendering, const Value& input,
                     const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "wordwrap", args,
           {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const int64_t width = NumberOr(bound[0], 79);
  const bool breaks = bound[1].IsUndefined() || Truth(bound[1]);
  const bool hyphens = bound[3].IsUndefined() || Truth(bound[3]);
  const bool has_mark = !bound[2].IsUndefined() && !bound[2].Is<None>();
  const Text mark = has_mark ? Str(rendering, bound[2]) : Text("\n");
  if (width < 1) {
    rendering.Fail("wordwrap: the width is less than 1");
    return Undefined{};
  }
  TextBuilder out(rendering);
  bool first = true;
  for (const Value& line : SplitLines(rendering, Str(rendering, input))) {
    rendering.StepBytes(line.IfText()->size());
    if (!rendering.ok()) break;
    std::vector<Text> wrapped =
        WrapLine(*line.IfText(), width, breaks, hyphens);
    if (wrapped.empty()) wrapped.emplace_back();
    for (const Text& part : wrapped) {
      if (!std::exchange(first, false)) out.Append(mark);
      out.Append(part);
    }
  }
  return MakeString(rendering, out.TakeText());
}

Value XmlAttrFilter(Rendering& rendering, const Value& input,
                    const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "xmlattr", args, {"autospace"});
  const Dict* const dict = input.IfRef<Dict>();
  if (dict == nullptr) {
    FailKind(rendering, "xmlattr", input, "a dict");
    return Undefined{};
  }
  TextBuilder out(rendering);
  for (const auto& [key, value] : dict->items) {
    if (value.Is<None>() || value.IsUndefined()) continue;
    const Text name = Str(rendering, key);
    if (name.bytes().find_first_of(" \t\n\r\f\v/>=") !=
        std::string_view::npos) {
      rendering.Fail("xmlattr: a name has a character that it may not have");
      return Undefined{};
    }
    const bool spaced = bound[0].IsUndefined() || Truth(bound[0]);
    if (!out.text().empty() || spaced) out.Append(" ");
    out.Append(Escaped(rendering, name));
    out.Append("=\"");
    out.Append(Escaped(rendering, Str(rendering, value)));
    out.Append("\"");
  }
  return MakeString(rendering, out.TakeText());
}

// Appends a URL's path or, in which a space is a plus, a part of its query.
void AppendQuoted(const Text& text, bool query, TextBuilder* out) {
  const std::string_view safe = query ? "_.-~" : "_.-~/";
  text.ForEachRun([&](std::string_view part, Origin origin) {
    for (size_t i = 0; i < part.size(); ++i) {
      if (absl::ascii_isalnum(part[i]) ||
          safe.find(part[i]) != std::string_view::npos) {
        out->Append(part.substr(i, 1), origin);
        continue;
      }
      if (query && part[i] == ' ') {
        out->Append("+", origin);
        continue;
      }
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(part[i]);
      const char escape[3] = {'%', kDigits[byte / 16], kDigits[byte % 16]};
      out->Append(std::string_view(escape, 3), origin);
    }
  });
}

Value UrlEncodeFilter(Rendering& rendering, const Value& input, const Args&) {
  TextBuilder out(rendering);
  if (input.IfRef<Dict>() == nullptr && input.IfRef<List>() == nullptr) {
    AppendQuoted(Str(rendering, input), /*query=*/false, &out);
    return MakeString(rendering, out.TakeText());
  }
  const Value pairs = input.IfRef<Dict>() != nullptr
                          ? FindListFilter("items")(rendering, input, {})
                          : input;
  const std::shared_ptr<const List> list = Iterate(rendering, pairs);
  for (size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
    const std::shared_ptr<const List> pair = Iterate(rendering, list->items[i]);
    if (pair == nullptr || pair->items.size() != 2) {
      rendering.Fail("urlencode: needs pairs");
      return Undefined{};
    }
    if (i > 0) out.Append("&");
    AppendQuoted(Str(rendering, pair->items[0]), /*query=*/true, &out);
    out.Append("=");
    AppendQuoted(Str(rendering, pair->items[1]), /*query=*/true, &out);
  }
  return MakeString(rendering, out.TakeText());
}

// Removes comments and tags, joins the words by single spaces, and resolves the
// usual entities.
Value StripTagsFilter(Rendering& rendering, const Value& input, const Args&) {
  const Text text = Str(rendering, input);
  const std::string_view bytes = text.bytes();
  rendering.StepBytes(bytes.size());
  TextBuilder plain(rendering);
  for (size_t at = 0; at < bytes.size();) {
    const bool comment = bytes.substr(at, 4) == "<!--";
    const size_t close = bytes[at] != '<' ? std::string_view::npos
                         : comment        ? bytes.find("-->", at + 4)
                                          : bytes.find('>', at);
    if (close != std::string_view::npos) {
      at = close + (comment ? 3 : 1);
      continue;
    }
    const size_t end = std::min(bytes.find('<', at + 1), bytes.size());
    plain.Append(text, at, end);
    at = end;
  }
  const Value words = MakeList(rendering, SplitWords(rendering, plain.text()));
  Value joined = Join(rendering, words, Text(" "));
  constexpr std::pair<const char*, const char*> kEntities[] = {
      {"&lt;", "<"},  {"&gt;", ">"},        {"&quot;", "\""}, {"&#34;", "\""},
      {"&#39;", "'"}, {"&nbsp;", "\u00A0"}, {"&amp;", "&"}};
  for (const auto& [entity, character] : kEntities) {
    if (!rendering.ok()) return Undefined{};
    joined =
        Replace(rendering, *joined.IfText(), Text(entity), Text(character), -1);
  }
  return joined;
}

Value FileSizeFilter(Rendering& rendering, const Value& input,
                     const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "filesizeformat", args, {"binary"});
  const Filter as_float = FindFilter("float");
  const double bytes = as_float(rendering, input, {}).IfNumber().value_or(0);
  const bool binary = Truth(bound[0]);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return MakeString(rendering, "1 Byte");
  if (bytes < base) {
    return MakeString(rendering,
                      absl::StrCat(static_cast<int64_t>(bytes), " Bytes"));
  }
  constexpr std::string_view kUnits = "kMGTPEZY";
  double unit = base;
  size_t i = 0;
  while (i + 1 < kUnits.size() && bytes >= unit * base) {
    unit *= base;
    ++i;
  }
  const char letter = binary && i == 0 ? 'K' : kUnits[i];
  char text[64];
  std::snprintf(text, sizeof(text), "%.1f %c%sB", bytes / unit, letter,
                binary ? "i" : "");
  return MakeString(rendering, text);
}

constexpr BuiltinEntry<Filter> kTextFilters[] = {
    {"center", CenterFilter},       {"filesizeformat", FileSizeFilter},
    {"format", FormatFilter},       {"pprint", PprintFilter},
    {"striptags", StripTagsFilter}, {"truncate", TruncateFilter},
    {"urlencode", UrlEncodeFilter}, {"wordcount", WordCountFilter},
    {"wordwrap", WordWrapFilter},   {"xmlattr", XmlAttrFilter},
};

}  // namespace

Filter FindTextFilter(std::string_view name) {
  return FindIn(kTextFilters, name);
}

}  // namespace tiercel::jinja
