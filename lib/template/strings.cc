// Operations on texts that filters and methods share.

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/template/builtins.h"
#include "lib/template/format.h"
#include "lib/template/printf.h"

namespace tiercel::jinja {

Text Strip(const Text& text, const Text* set, Side side) {
  const std::string_view bytes = text.bytes();
  const auto drops = [set](std::string_view character) {
    return set == nullptr
               ? IsSpace(character)
               : set->bytes().find(character) != std::string_view::npos;
  };
  size_t begin = 0;
  size_t end = bytes.size();
  while (side != Side::kRight && begin < end) {
    const size_t next = CharacterEnd(bytes, begin);
    if (!drops(bytes.substr(begin, next - begin))) break;
    begin = next;
  }
  while (side != Side::kLeft && end > begin) {
    const size_t previous = CharacterBegin(bytes, end);
    if (!drops(bytes.substr(previous, end - previous))) break;
    end = previous;
  }
  return text.Cut(begin, end);
}

Value Replace(Rendering& rendering, const Text& text, const Text& from,
              const Text& to, int64_t count) {
  const std::string_view bytes = text.bytes();
  TextBuilder out(rendering);
  size_t at = 0;
  rendering.StepBytes(bytes.size());
  if (from.empty()) {  // `to` goes before every character and at the end
    for (; count != 0 && rendering.Step(); --count) {
      out.Append(to);
      if (at == bytes.size()) break;
      const size_t next = CharacterEnd(bytes, at);
      out.Append(text, at, next);
      at = next;
    }
  } else {
    for (; count != 0 && rendering.Step(); --count) {
      const size_t found = bytes.find(from.bytes(), at);
      if (found == std::string_view::npos) break;
      out.Append(text, at, found);
      out.Append(to);
      at = found + from.size();
    }
  }
  out.Append(text, at, bytes.size());
  return MakeString(rendering, out.TakeText());
}

namespace {

// Returns the bytes of the line end that begins at `at`; 0: none does.
size_t LineEndAt(std::string_view bytes, size_t at) {
  constexpr std::string_view kLong[] = {"\r\n", "\u0085", "\u2028", "\u2029"};
  for (const std::string_view end : kLong) {
    if (bytes.substr(at, end.size()) == end) return end.size();
  }
  return std::string_view("\n\r\v\f\x1C\x1D\x1E").find(bytes[at]) !=
         std::string_view::npos;
}

}  // namespace

std::vector<Value> SplitLines(Rendering& rendering, const Text& text,
                              bool keeps) {
  std::vector<Value> lines;
  const std::string_view bytes = text.bytes();
  rendering.StepBytes(bytes.size());
  for (size_t begin = 0; begin < bytes.size() && rendering.Step();) {
    size_t end = begin;
    size_t mark = 0;
    for (; end < bytes.size(); ++end) {
      mark = LineEndAt(bytes, end);
      if (mark != 0) break;
    }
    lines.push_back(
        MakeString(rendering, text.Cut(begin, keeps ? end + mark : end)));
    begin = end + mark;
  }
  return lines;
}

Value Join(Rendering& rendering, const Value& items, const Text& separator) {
  const std::shared_ptr<const List> list = Iterate(rendering, items);
  if (list == nullptr) return Undefined{};
  TextBuilder out(rendering);
  for (size_t i = 0; i < list->items.size() && rendering.ok(); ++i) {
    if (i > 0) out.Append(separator);
    AppendStr(rendering, list->items[i], &out);
  }
  return MakeString(rendering, out.TakeText());
}

std::vector<Value> SplitWords(Rendering& rendering, const Text& text) {
  std::vector<Value> words;
  const std::string_view bytes = text.bytes();
  const auto is_space = [&](size_t at) {
    return IsSpace(bytes.substr(at, CharacterEnd(bytes, at) - at));
  };
  rendering.StepBytes(bytes.size());
  for (size_t at = 0; at < bytes.size() && rendering.Step();) {
    const size_t begin = at;
    const bool space = is_space(at);
    while (at < bytes.size() && is_space(at) == space) {
      at = CharacterEnd(bytes, at);
    }
    if (!space) words.push_back(MakeString(rendering, text.Cut(begin, at)));
  }
  return words;
}

Value Centered(Rendering& rendering, const Text& text, int64_t width,
               const Text& fill) {
  // Python puts one of an odd number of characters more on the left if the
  // width is odd.
  const auto size = static_cast<int64_t>(CountCharacters(text.bytes()));
  const int64_t missing = std::max<int64_t>(width - size, 0);
  const int64_t left = missing / 2 + (missing & width & 1);
  TextBuilder padded(rendering);
  AppendPadded(rendering, text, fill, '>', size + left, &padded);
  TextBuilder out(rendering);
  AppendPadded(rendering, padded.text(), fill, '<', width, &out);
  return MakeString(rendering, out.TakeText());
}

Text Escaped(Rendering& rendering, const Text& text) {
  static constexpr std::pair<char, std::string_view> kEntities[] = {
      {'&', "&amp;"},
      {'<', "&lt;"},
      {'>', "&gt;"},
      {'"', "&#34;"},
      {'\'', "&#39;"}};
  TextBuilder out(rendering);
  text.ForEachRun([&out](std::string_view part, Origin origin) {
    for (size_t i = 0; i < part.size(); ++i) {
      const auto* const found =
          std::find_if(std::begin(kEntities), std::end(kEntities),
                       [&](const auto& e) { return e.first == part[i]; });
      out.Append(
          found == std::end(kEntities) ? part.substr(i, 1) : found->second,
          origin);
    }
  });
  return out.TakeText();
}

}  // namespace tiercel::jinja
