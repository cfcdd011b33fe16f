// The methods of strings.

#include <algorithm>
#include <charconv>
#include <string>

#include "models/chat/builtins.h"
#include "models/chat/format.h"

namespace tiercel::jinja {
namespace {

// The text of an argument, null and failed where it is none.
const Text* NeedText(Run& run, std::string_view who, const Value& value) {
  const Text* text = value.IfText();
  if (text == nullptr) FailKind(run, who, value, "a string");
  return text;
}

bool IsAbsent(const Value& value) {
  return value.IsUndefined() || value.Is<None>();
}

int64_t IntegerOr(Run& run, std::string_view who, const Value& value,
                  int64_t absent) {
  if (IsAbsent(value)) return absent;
  const std::optional<int64_t> integer = value.IfInteger();
  if (!integer.has_value()) FailKind(run, who, value, "an integer");
  return integer.value_or(absent);
}

bool IsDigitByte(char byte) { return byte >= '0' && byte <= '9'; }

Value MakeTriple(Run& run, Text first, Text second, Text third) {
  return MakeList(
      run,
      {MakeString(run, std::move(first)), MakeString(run, std::move(second)),
       MakeString(run, std::move(third))},
      /*tuple=*/true);
}

Value StripMethod(Run& run, const Text& self, const Args& args, Side side) {
  const std::vector<Value> bound = Bind(run, "strip", args, {"chars"});
  run.StepBytes(self.size());
  const Text* set = nullptr;
  if (!IsAbsent(bound[0])) {
    set = NeedText(run, "strip", bound[0]);
    if (set == nullptr) return Undefined{};
  }
  return MakeString(run, Strip(self, set, side));
}

// Splits at white space, at most `most` times; the rest keeps its inside.
std::vector<Value> SplitSpaces(Run& run, const Text& self, int64_t most) {
  std::vector<Value> parts;
  const std::string_view bytes = self.bytes();
  const auto is_space = [&](size_t at) {
    return IsSpace(bytes.substr(at, CharacterEnd(bytes, at) - at));
  };
  size_t at = 0;
  while (run.Step()) {
    while (at < bytes.size() && is_space(at)) at = CharacterEnd(bytes, at);
    if (at == bytes.size()) break;
    size_t end = at;
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      end =
          at + Strip(self.Cut(at, bytes.size()), nullptr, Side::kRight).size();
      parts.push_back(MakeString(run, self.Cut(at, end)));
      break;
    }
    while (end < bytes.size() && !is_space(end)) end = CharacterEnd(bytes, end);
    parts.push_back(MakeString(run, self.Cut(at, end)));
    at = end;
  }
  return parts;
}

std::vector<Value> SplitAt(Run& run, const Text& self, std::string_view mark,
                           int64_t most) {
  std::vector<Value> parts;
  size_t begin = 0;
  while (run.Step() && static_cast<int64_t>(parts.size()) != most) {
    const size_t end = self.bytes().find(mark, begin);
    if (end == std::string_view::npos) break;
    parts.push_back(MakeString(run, self.Cut(begin, end)));
    begin = end + mark.size();
  }
  parts.push_back(MakeString(run, self.Cut(begin, self.size())));
  return parts;
}

std::vector<Value> SplitAtFromRight(Run& run, const Text& self,
                                    std::string_view mark, int64_t most) {
  std::vector<Value> parts;
  size_t end = self.size();
  while (run.Step() && static_cast<int64_t>(parts.size()) != most &&
         end >= mark.size()) {
    const size_t begin = self.bytes().rfind(mark, end - mark.size());
    if (begin == std::string_view::npos) break;
    parts.push_back(MakeString(run, self.Cut(begin + mark.size(), end)));
    end = begin;
  }
  parts.push_back(MakeString(run, self.Cut(0, end)));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Value SplitMethod(Run& run, const Text& self, const Args& args,
                  bool from_right) {
  const std::vector<Value> bound =
      Bind(run, "split", args, {"sep", "maxsplit"});
  const int64_t most = IntegerOr(run, "split", bound[1], -1);
  run.StepBytes(self.size());
  if (IsAbsent(bound[0])) {
    if (from_right && most >= 0) {
      run.Fail("rsplit needs a separator");
      return Undefined{};
    }
    return MakeList(run, SplitSpaces(run, self, most));
  }
  const Text* mark = NeedText(run, "split", bound[0]);
  if (mark == nullptr) return Undefined{};
  if (mark->empty()) {
    run.Fail("split: the separator is empty");
    return Undefined{};
  }
  return MakeList(run, from_right
                           ? SplitAtFromRight(run, self, mark->bytes(), most)
                           : SplitAt(run, self, mark->bytes(), most));
}

Value PartitionMethod(Run& run, const Text& self, const Args& args,
                      bool from_right) {
  const std::vector<Value> bound = Bind(run, "partition", args, {"sep"}, 1);
  const Text* mark = NeedText(run, "partition", bound[0]);
  if (mark == nullptr) return Undefined{};
  if (mark->empty()) {
    run.Fail("partition: the separator is empty");
    return Undefined{};
  }
  run.StepBytes(self.size());
  const size_t at = from_right ? self.bytes().rfind(mark->bytes())
                               : self.bytes().find(mark->bytes());
  if (at == std::string_view::npos) {
    return from_right ? MakeTriple(run, Text(), Text(), self)
                      : MakeTriple(run, self, Text(), Text());
  }
  const size_t end = at + mark->size();
  return MakeTriple(run, self.Cut(0, at), self.Cut(at, end),
                    self.Cut(end, self.size()));
}

Value AffixMethod(Run& run, const Text& self, const Args& args, bool at_end) {
  const std::string_view who = at_end ? "endswith" : "startswith";
  const std::vector<Value> bound = Bind(run, who, args, {"affix"}, 1);
  const auto matches = [&](const Value& value) {
    const Text* affix = NeedText(run, who, value);
    if (affix == nullptr || affix->size() > self.size()) return false;
    run.StepBytes(affix->size());
    const size_t at = at_end ? self.size() - affix->size() : 0;
    return self.bytes().substr(at, affix->size()) == affix->bytes();
  };
  const List* list = bound[0].IfRef<List>();
  if (list == nullptr || !list->tuple) return matches(bound[0]);
  return std::any_of(list->items.begin(), list->items.end(), matches);
}

Value RemoveAffixMethod(Run& run, const Text& self, const Args& args,
                        bool at_end) {
  const Value found = AffixMethod(run, self, args, at_end);
  if (!run.ok() || !Truth(found)) return MakeString(run, self);
  const Text* affix = args.positional[0].IfText();
  if (affix == nullptr) {
    FailKind(run, "removeprefix", args.positional[0], "a string");
    return Undefined{};
  }
  return MakeString(run, at_end ? self.Cut(0, self.size() - affix->size())
                                : self.Cut(affix->size(), self.size()));
}

Value FindMethod(Run& run, const Text& self, const Args& args,
                 bool from_right) {
  const std::vector<Value> bound = Bind(run, "find", args, {"sub"}, 1);
  const Text* part = NeedText(run, "find", bound[0]);
  if (part == nullptr) return Undefined{};
  run.StepBytes(self.size());
  const size_t at = from_right ? self.bytes().rfind(part->bytes())
                               : self.bytes().find(part->bytes());
  if (at == std::string_view::npos) return int64_t{-1};
  return static_cast<int64_t>(CountCharacters(self.bytes().substr(0, at)));
}

Value CountMethod(Run& run, const Text& self, const Args& args) {
  const std::vector<Value> bound = Bind(run, "count", args, {"sub"}, 1);
  const Text* part = NeedText(run, "count", bound[0]);
  if (part == nullptr) return Undefined{};
  run.StepBytes(self.size());
  if (part->empty()) {
    return static_cast<int64_t>(CountCharacters(self.bytes()) + 1);
  }
  int64_t count = 0;
  for (size_t at = self.bytes().find(part->bytes());
       at != std::string_view::npos && run.Step();
       at = self.bytes().find(part->bytes(), at + part->size())) {
    ++count;
  }
  return count;
}

Value ReplaceMethod(Run& run, const Text& self, const Args& args) {
  const std::vector<Value> bound =
      Bind(run, "replace", args, {"old", "new", "count"}, 2);
  const Text* from = NeedText(run, "replace", bound[0]);
  const Text* to = NeedText(run, "replace", bound[1]);
  if (from == nullptr || to == nullptr) return Undefined{};
  return Replace(run, self, *from, *to,
                 IntegerOr(run, "replace", bound[2], -1));
}

Value JoinMethod(Run& run, const Text& self, const Args& args) {
  const std::vector<Value> bound = Bind(run, "join", args, {"items"}, 1);
  return Join(run, bound[0], self);
}

Value Title(Run& run, const Text& self) {
  run.StepBytes(self.size());
  bool in_word = false;
  return MakeString(run, self.Mapped([&in_word](char byte) {
    const char mapped = in_word ? Lower(byte) : Upper(byte);
    in_word = IsLetter(byte);
    return mapped;
  }));
}

// What a field of str.format stands for; null where that is nothing.
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
Value FormatMethod(Run& run, const Text& self, const Args& args) {
  const std::string_view bytes = self.bytes();
  TextBuilder out(run);
  size_t next = 0;  // of the arguments, for {}
  for (size_t at = 0; at < bytes.size() && run.Step();) {
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
      run.Fail("format: a brace has no partner");
      break;
    }
    const std::string_view field = bytes.substr(brace + 1, close - brace - 1);
    const Value* argument = FormatArgument(args, field, &next);
    if (argument == nullptr) {
      run.Fail("format: a field names no argument");
      break;
    }
    AppendStr(run, *argument, &out);
    at = close + 1;
  }
  return MakeString(run, out.TakeText());
}

Value Capitalize(Run& run, const Text& self) {
  run.StepBytes(self.size());
  bool first = true;
  return MakeString(run, self.Mapped([&first](char byte) {
    return std::exchange(first, false) ? Upper(byte) : Lower(byte);
  }));
}

// str.isdigit and its kind: every character is, and there is one.
template <typename Is>
Value AllBytes(Run& run, const Text& self, Is is) {
  run.StepBytes(self.size());
  return !self.empty() &&
         std::all_of(self.bytes().begin(), self.bytes().end(), is);
}

using StringMethod = Value (*)(Run&, const Text& self, const Args&);

struct StringMethodEntry {
  std::string_view name;
  StringMethod call;
};

constexpr StringMethodEntry kStringMethods[] = {
    {"capitalize",
     [](Run& run, const Text& s, const Args&) { return Capitalize(run, s); }},
    {"count", CountMethod},
    {"endswith",
     [](Run& run, const Text& s, const Args& a) {
       return AffixMethod(run, s, a, /*at_end=*/true);
     }},
    {"find",
     [](Run& run, const Text& s, const Args& a) {
       return FindMethod(run, s, a, /*from_right=*/false);
     }},
    {"format", FormatMethod},
    {"isalnum",
     [](Run& run, const Text& s, const Args&) {
       return AllBytes(run, s,
                       [](char b) { return IsLetter(b) || IsDigitByte(b); });
     }},
    {"isalpha", [](Run& run, const Text& s,
                   const Args&) { return AllBytes(run, s, IsLetter); }},
    {"isdigit", [](Run& run, const Text& s,
                   const Args&) { return AllBytes(run, s, IsDigitByte); }},
    {"isspace",
     [](Run& run, const Text& s, const Args&) -> Value {
       run.StepBytes(s.size());
       return !s.empty() && Strip(s, nullptr, Side::kBoth).empty();
     }},
    {"join", JoinMethod},
    {"lower", [](Run& run, const Text& s,
                 const Args&) { return MakeString(run, s.Mapped(Lower)); }},
    {"lstrip",
     [](Run& run, const Text& s, const Args& a) {
       return StripMethod(run, s, a, Side::kLeft);
     }},
    {"partition",
     [](Run& run, const Text& s, const Args& a) {
       return PartitionMethod(run, s, a, /*from_right=*/false);
     }},
    {"removeprefix",
     [](Run& run, const Text& s, const Args& a) {
       return RemoveAffixMethod(run, s, a, /*at_end=*/false);
     }},
    {"removesuffix",
     [](Run& run, const Text& s, const Args& a) {
       return RemoveAffixMethod(run, s, a, /*at_end=*/true);
     }},
    {"replace", ReplaceMethod},
    {"rfind",
     [](Run& run, const Text& s, const Args& a) {
       return FindMethod(run, s, a, /*from_right=*/true);
     }},
    {"rpartition",
     [](Run& run, const Text& s, const Args& a) {
       return PartitionMethod(run, s, a, /*from_right=*/true);
     }},
    {"rsplit",
     [](Run& run, const Text& s, const Args& a) {
       return SplitMethod(run, s, a, /*from_right=*/true);
     }},
    {"rstrip",
     [](Run& run, const Text& s, const Args& a) {
       return StripMethod(run, s, a, Side::kRight);
     }},
    {"split",
     [](Run& run, const Text& s, const Args& a) {
       return SplitMethod(run, s, a, /*from_right=*/false);
     }},
    {"splitlines",
     [](Run& run, const Text& s, const Args&) {
       return MakeList(run, SplitLines(run, s));
     }},
    {"startswith",
     [](Run& run, const Text& s, const Args& a) {
       return AffixMethod(run, s, a, /*at_end=*/false);
     }},
    {"strip",
     [](Run& run, const Text& s, const Args& a) {
       return StripMethod(run, s, a, Side::kBoth);
     }},
    {"title",
     [](Run& run, const Text& s, const Args&) { return Title(run, s); }},
    {"upper", [](Run& run, const Text& s,
                 const Args&) { return MakeString(run, s.Mapped(Upper)); }},
};

}  // namespace

Value GetStringMethod(Run& run, const Value& self, const std::string& name) {
  for (const StringMethodEntry& method : kStringMethods) {
    if (method.name != name) continue;
    return MakeFunction(name, self,
                        [&run, self, call = method.call](const Args& args) {
                          return call(run, *self.IfText(), args);
                        });
  }
  return Undefined{&name};
}

}  // namespace tiercel::jinja
