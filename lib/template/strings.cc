// Operations on texts that filters and methods share.

#include <algorithm>

#include "lib/template/builtins.h"
#include "lib/template/format.h"

namespace tiercel::jinja {

char Lower(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a')
                                    : byte;
}

char Upper(char byte) {
  return byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 'a' + 'A')
                                    : byte;
}

bool IsLetter(char byte) {
  return Upper(byte) != Lower(byte) ||
         (static_cast<unsigned char>(byte) & 0x80) != 0;
}

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

std::vector<Value> SplitLines(Rendering& rendering, const Text& text) {
  std::vector<Value> lines;
  const std::string_view bytes = text.bytes();
  rendering.StepBytes(bytes.size());
  for (size_t begin = 0; begin < bytes.size() && rendering.Step();) {
    const size_t end = std::min(
        bytes.find_first_of("\n\r\v\f\x1C\x1D\x1E", begin), bytes.size());
    lines.push_back(MakeString(rendering, text.Cut(begin, end)));
    begin = bytes.substr(end, 2) == "\r\n" ? end + 2 : end + 1;
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

}  // namespace tiercel::jinja
