// The methods of strings.

#include <algorithm>
#include <charconv>
#include <string>

#include "lib/template/builtins.h"
#include "lib/template/format.h"

namespace tiercel::jinja {
namespace {

// Returns the text of an argument; null, with a failure, if it has none.
const Text* NeedText(Rendering& rendering, std::string_view who,
                     const Value& value) {
  const Text* text = value.IfText();
  if (text == nullptr) FailKind(rendering, who, value, "a string");
  return text;
}

bool IsAbsent(const Value& value) {
  return value.IsUndefined() || value.Is<None>();
}

int64_t IntegerOr(Rendering& rendering, std::string_view who,
                  const Value& value, int64_t absent) {
  if (IsAbsent(value)) return absent;
  const std::optional<int64_t> integer = value.IfInteger();
  if (!integer.has_value()) FailKind(rendering, who, value, "an integer");
  return integer.value_or(absent);
}

bool IsDigitByte(char byte) { return byte >= '0' && byte <= '9'; }

Value MakeTriple(Rendering& rendering, Text first, Text second, Text third) {
  return MakeList(rendering,
                  {MakeString(rendering, std::move(first)),
                   MakeString(rendering, std::move(second)),
                   MakeString(rendering, std::move(third))},
                  /*tuple=*/true);
}

Value StripMethod(Rendering& rendering, const Text& self, const Args& args,
                  Side side) {
  const std::vector<Value> bound = Bind(rendering, "strip", args, {"chars"});
  rendering.StepBytes(self.size());
  const Text* set = nullptr;
  if (!IsAbsent(bound[0])) {
    set = NeedText(rendering, "strip", bound[0]);
    if (set == nullptr) return Undefined{};
  }
  return MakeString(rendering, Strip(self, set, side));
}

// Splits at white space, at most `most` times; the rest is not split.
std::vector<Value> SplitSpaces(Rendering& rendering, const Text& self,
                               int64_t most) {
  std::vector<Value> parts;
  const std::string_view bytes = self.bytes();
  const auto is_space = [&](size_t at) {
    return IsSpace(bytes.substr(at, CharacterEnd(bytes, at) - at));
  };
  size_t at = 0;
  while (rendering.Step()) {
    while (at < bytes.size() && is_space(at)) at = CharacterEnd(bytes, at);
    if (at == bytes.size()) break;
    size_t end = at;
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      end =
          at + Strip(self.Cut(at, bytes.size()), nullptr, Side::kRight).size();
      parts.push_back(MakeString(rendering, self.Cut(at, end)));
      break;
    }
    while (end < bytes.size() && !is_space(end)) end = CharacterEnd(bytes, end);
    parts.push_back(MakeString(rendering, self.Cut(at, end)));
    at = end;
  }
  return parts;
}

std::vector<Value> SplitAt(Rendering& rendering, const Text& self,
                           std::string_view mark, int64_t most) {
  std::vector<Value> parts;
  size_t begin = 0;
  while (rendering.Step() && static_cast<int64_t>(parts.size()) != most) {
    const size_t end = self.bytes().find(mark, begin);
    if (end == std::string_view::npos) break;
    parts.push_back(MakeString(rendering, self.Cut(begin, end)));
    begin = end + mark.size();
  }
  parts.push_back(MakeString(rendering, self.Cut(begin, self.size())));
  return parts;
}

std::vector<Value> SplitAtFromRight(Rendering& rendering, const Text& self,
                                    std::string_view mark, int64_t most) {
  std::vector<Value> parts;
  size_t end = self.size();
  while (rendering.Step() && static_cast<int64_t>(parts.size()) != most &&
         end >= mark.size()) {
    const size_t begin = self.bytes().rfind(mark, end - mark.size());
    if (begin == std::string_view::npos) break;
    parts.push_back(MakeString(rendering, self.Cut(begin + mark.size(), end)));
    end = begin;
  }
  parts.push_back(MakeString(rendering, self.Cut(0, end)));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Value SplitMethod(Rendering& rendering, const Text& self, const Args& args,
                  bool from_right) {
  const std::vector<Value> bound =
      Bind(rendering, "split", args, {"sep", "maxsplit"});
  const int64_t most = IntegerOr(rendering, "split", bound[1], -1);
  rendering.StepBytes(self.size());
  if (IsAbsent(bound[0])) {
    if (from_right && most >= 0) {
      rendering.Fail("rsplit needs a separator");
      return Undefined{};
    }
    return MakeList(rendering, SplitSpaces(rendering, self, most));
  }
  const Text* mark = NeedText(rendering, "split", bound[0]);
  if (mark == nullptr) return Undefined{};
  if (mark->empty()) {
    rendering.Fail("split: the separator is empty");
    return Undefined{};
  }
  return MakeList(rendering,
                  from_right
                      ? SplitAtFromRight(rendering, self, mark->bytes(), most)
                      : SplitAt(rendering, self, mark->bytes(), most));
}

Value PartitionMethod(Rendering& rendering, const Text& self, const Args& args,
                      bool from_right) {
  const std::vector<Value> bound =
      Bind(rendering, "partition", args, {"sep"}, 1);
  const Text* mark = NeedText(rendering, "partition", bound[0]);
  if (mark == nullptr) return Undefined{};
  if (mark->empty()) {
    rendering.Fail("partition: the separator is empty");
    return Undefined{};
  }
  rendering.StepBytes(self.size());
  const size_t at = from_right ? self.bytes().rfind(mark->bytes())
                               : self.bytes().find(mark->bytes());
  if (at == std::string_view::npos) {
    return from_right ? MakeTriple(rendering, Text(), Text(), self)
                      : MakeTriple(rendering, self, Text(), Text());
  }
  const size_t end = at + mark->size();
  return MakeTriple(rendering, self.Cut(0, at), self.Cut(at, end),
                    self.Cut(end, self.size()));
}

Value AffixMethod(Rendering& rendering, const Text& self, const Args& args,
                  bool at_end) {
  const std::string_view who = at_end ? "endswith" : "startswith";
  const std::vector<Value> bound = Bind(rendering, who, args, {"affix"}, 1);
  const auto matches = [&](const Value& value) {
    const Text* affix = NeedText(rendering, who, value);
    if (affix == nullptr || affix->size() > self.size()) return false;
    rendering.StepBytes(affix->size());
    const size_t at = at_end ? self.size() - affix->size() : 0;
    return self.bytes().substr(at, affix->size()) == affix->bytes();
  };
  const List* list = bound[0].IfRef<List>();
  if (list == nullptr || !list->tuple) return matches(bound[0]);
  return std::any_of(list->items.begin(), list->items.end(), matches);
}

Value RemoveAffixMethod(Rendering& rendering, const Text& self,
                        const Args& args, bool at_end) {
  const Value found = AffixMethod(rendering, self, args, at_end);
  if (!rendering.ok() || !Truth(found)) return MakeString(rendering, self);
  const Text* affix = args.positional[0].IfText();
  if (affix == nullptr) {
    FailKind(rendering, "removeprefix", args.positional[0], "a string");
    return Undefined{};
  }
  return MakeString(rendering, at_end ? self.Cut(0, self.size() - affix->size())
                                      : self.Cut(affix->size(), self.size()));
}

Value FindMethod(Rendering& rendering, const Text& self, const Args& args,
                 bool from_right) {
  const std::vector<Value> bound = Bind(rendering, "find", args, {"sub"}, 1);
  const Text* part = NeedText(rendering, "find", bound[0]);
  if (part == nullptr) return Undefined{};
  rendering.StepBytes(self.size());
  const size_t at = from_right ? self.bytes().rfind(part->bytes())
                               : self.bytes().find(part->bytes());
  if (at == std::string_view::npos) return int64_t{-1};
  return static_cast<int64_t>(CountCharacters(self.bytes().substr(0, at)));
}

Value CountMethod(Rendering& rendering, const Text& self, const Args& args) {
  const std::vector<Value> bound = Bind(rendering, "count", args, {"sub"}, 1);
  const Text* part = NeedText(rendering, "count", bound[0]);
  if (part == nullptr) return Undefined{};
  rendering.StepBytes(self.size());
  if (part->empty()) {
    return static_cast<int64_t>(CountCharacters(self.bytes()) + 1);
  }
  int64_t count = 0;
  for (size_t at = self.bytes().find(part->bytes());
       at != std::string_view::npos && rendering.Step();
       at = self.bytes().find(part->bytes(), at + part->size())) {
    ++count;
  }
  return count;
}

Value ReplaceMethod(Rendering& rendering, const Text& self, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "replace", args, {"old", "new", "count"}, 2);
  const Text* from = NeedText(rendering, "replace", bound[0]);
  const Text* to = NeedText(rendering, "replace", bound[1]);
  if (from == nullptr || to == nullptr) return Undefined{};
  return Replace(rendering, self, *from, *to,
                 IntegerOr(rendering, "replace", bound[2], -1));
}

Value JoinMethod(Rendering& rendering, const Text& self, const Args& args) {
  const std::vector<Value> bound = Bind(rendering, "join", args, {"items"}, 1);
  return Join(rendering, bound[0], self);
}

Value Title(Rendering& rendering, const Text& self) {
  rendering.StepBytes(self.size());
  bool in_word = false;
  return MakeString(rendering, self.Mapped([&in_word](char byte) {
    const char mapped = in_word ? Lower(byte) : Upper(byte);
    in_word = IsLetter(byte);
    return mapped;
  }));
}

// Returns the argument that a field of str.format names; null if there is none.
const Value* FormatArgument(const Args& args, std::string_view field,
                            size_t* next) {
  size_t index = 0;
  if (field.empty()) {
    index = (*next)++;
  } else if (std::all_of(field.begin(), field.end(), IsDigitByte)) {
    const auto parsed =
        std::from_chars(field.data(), field.data() + field.size(), index);
    if (parsed.ec != std::errc()) return nullptr;
  } else {
    for (const auto& [name, value] : args.named) {
      if (name == field) return &value;
    }
    return nullptr;
  }
  return index < args.positional.size() ? &args.positional[index] : nullptr;
}

// str.format for {}, {0} and {name}, each written as str() does; {{ and }} are
// braces.
Value FormatMethod(Rendering& rendering, const Text& self, const Args& args) {
  const std::string_view bytes = self.bytes();
  TextBuilder out(rendering);
  size_t next = 0;  // index of the next argument for {}
  for (size_t at = 0; at < bytes.size() && rendering.Step();) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.Append(self, at, brace);
    if (brace == bytes.size()) break;
    if (bytes.substr(brace, 2) == std::string(2, bytes[brace])) {
      out.Append(self, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const size_t close = bytes.find('}', brace);
    if (bytes[brace] == '}' || close == std::string_view::npos) {
      rendering.Fail("format: a brace has no partner");
      break;
    }
    const std::string_view field = bytes.substr(brace + 1, close - brace - 1);
    const Value* argument = FormatArgument(args, field, &next);
    if (argument == nullptr) {
      rendering.Fail("format: a field names no argument");
      break;
    }
    AppendStr(rendering, *argument, &out);
    at = close + 1;
  }
  return MakeString(rendering, out.TakeText());
}

Value Capitalize(Rendering& rendering, const Text& self) {
  rendering.StepBytes(self.size());
  bool first = true;
  return MakeString(rendering, self.Mapped([&first](char byte) {
    return std::exchange(first, false) ? Upper(byte) : Lower(byte);
  }));
}

// str.isdigit and its like: true if there is a character and all of them are.
template <typename Is>
Value AllBytes(Rendering& rendering, const Text& self, Is is) {
  rendering.StepBytes(self.size());
  return !self.empty() &&
         std::all_of(self.bytes().begin(), self.bytes().end(), is);
}

using StringMethod = Value (*)(Rendering&, const Text& self, const Args&);

struct StringMethodEntry {
  std::string_view name;
  StringMethod call;
};

constexpr StringMethodEntry kStringMethods[] = {
    {"capitalize", [](Rendering& rendering, const Text& s,
                      const Args&) { return Capitalize(rendering, s); }},
    {"count", CountMethod},
    {"endswith",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return AffixMethod(rendering, s, a, /*at_end=*/true);
     }},
    {"find",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return FindMethod(rendering, s, a, /*from_right=*/false);
     }},
    {"format", FormatMethod},
    {"isalnum",
     [](Rendering& rendering, const Text& s, const Args&) {
       return AllBytes(rendering, s,
                       [](char b) { return IsLetter(b) || IsDigitByte(b); });
     }},
    {"isalpha", [](Rendering& rendering, const Text& s,
                   const Args&) { return AllBytes(rendering, s, IsLetter); }},
    {"isdigit",
     [](Rendering& rendering, const Text& s, const Args&) {
       return AllBytes(rendering, s, IsDigitByte);
     }},
    {"isspace",
     [](Rendering& rendering, const Text& s, const Args&) -> Value {
       rendering.StepBytes(s.size());
       return !s.empty() && Strip(s, nullptr, Side::kBoth).empty();
     }},
    {"join", JoinMethod},
    {"lower",
     [](Rendering& rendering, const Text& s, const Args&) {
       return MakeString(rendering, s.Mapped(Lower));
     }},
    {"lstrip",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return StripMethod(rendering, s, a, Side::kLeft);
     }},
    {"partition",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return PartitionMethod(rendering, s, a, /*from_right=*/false);
     }},
    {"removeprefix",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return RemoveAffixMethod(rendering, s, a, /*at_end=*/false);
     }},
    {"removesuffix",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return RemoveAffixMethod(rendering, s, a, /*at_end=*/true);
     }},
    {"replace", ReplaceMethod},
    {"rfind",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return FindMethod(rendering, s, a, /*from_right=*/true);
     }},
    {"rpartition",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return PartitionMethod(rendering, s, a, /*from_right=*/true);
     }},
    {"rsplit",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return SplitMethod(rendering, s, a, /*from_right=*/true);
     }},
    {"rstrip",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return StripMethod(rendering, s, a, Side::kRight);
     }},
    {"split",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return SplitMethod(rendering, s, a, /*from_right=*/false);
     }},
    {"splitlines",
     [](Rendering& rendering, const Text& s, const Args&) {
       return MakeList(rendering, SplitLines(rendering, s));
     }},
    {"startswith",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return AffixMethod(rendering, s, a, /*at_end=*/false);
     }},
    {"strip",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return StripMethod(rendering, s, a, Side::kBoth);
     }},
    {"title", [](Rendering& rendering, const Text& s,
                 const Args&) { return Title(rendering, s); }},
    {"upper",
     [](Rendering& rendering, const Text& s, const Args&) {
       return MakeString(rendering, s.Mapped(Upper));
     }},
};

}  // namespace

Value GetStringMethod(Rendering& rendering, const Value& self,
                      const std::string& name) {
  for (const StringMethodEntry& method : kStringMethods) {
    if (method.name != name) continue;
    return MakeFunction(
        name, self, [&rendering, self, call = method.call](const Args& args) {
          return call(rendering, *self.IfText(), args);
        });
  }
  return Undefined{&name};
}

}  // namespace tiercel::jinja
