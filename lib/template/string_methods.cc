// The methods of strings.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/template/builtins.h"
#include "lib/template/format.h"
#include "lib/template/letter_case.h"
#include "lib/template/printf.h"

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

// Splits at white space from the end: the last part is what is left at the
// front.
std::vector<Value> SplitSpacesFromRight(Rendering& rendering, const Text& self,
                                        int64_t most) {
  std::vector<Value> parts;
  Text left = Strip(self, nullptr, Side::kRight);
  while (!left.empty() && rendering.Step()) {
    size_t begin = left.size();
    while (begin > 0) {
      const size_t previous = CharacterBegin(left.bytes(), begin);
      if (IsSpace(left.bytes().substr(previous, begin - previous))) break;
      begin = previous;
    }
    const bool rest = static_cast<int64_t>(parts.size()) == most;
    parts.push_back(
        MakeString(rendering, rest ? Strip(left, nullptr, Side::kLeft)
                                   : left.Cut(begin, left.size())));
    if (rest) break;
    left = Strip(left.Cut(0, begin), nullptr, Side::kRight);
    if (left.empty()) break;
  }
  std::reverse(parts.begin(), parts.end());
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
    return MakeList(rendering, from_right && most >= 0
                                   ? SplitSpacesFromRight(rendering, self, most)
                                   : SplitSpaces(rendering, self, most));
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

// str.ljust, str.rjust and str.center.
Value JustifyMethod(Rendering& rendering, const Text& self, const Args& args,
                    std::string_view who, char align) {
  const std::vector<Value> bound =
      Bind(rendering, who, args, {"width", "fillchar"}, 1);
  const int64_t width = IntegerOr(rendering, who, bound[0], 0);
  const Text fill =
      bound[1].IsUndefined() ? Text(" ") : Str(rendering, bound[1]);
  if (CountCharacters(fill.bytes()) != 1) {
    rendering.Fail(absl::StrCat(Abseil(who), ": the fill is one character"));
    return Undefined{};
  }
  if (align == '^') return Centered(rendering, self, width, fill);
  TextBuilder out(rendering);
  AppendPadded(rendering, self, fill, align, width, &out);
  return MakeString(rendering, out.TakeText());
}

Value ZfillMethod(Rendering& rendering, const Text& self, const Args& args) {
  const std::vector<Value> bound = Bind(rendering, "zfill", args, {"width"}, 1);
  const int64_t width = IntegerOr(rendering, "zfill", bound[0], 0);
  const bool has_sign =
      !self.empty() && (self.bytes()[0] == '+' || self.bytes()[0] == '-');
  const size_t sign = has_sign ? 1 : 0;
  TextBuilder out(rendering);
  out.Append(self, 0, sign);
  AppendPadded(rendering, self.Cut(sign, self.size()), Text("0"), '>',
               width - static_cast<int64_t>(sign), &out);
  return MakeString(rendering, out.TakeText());
}

Value ExpandTabsMethod(Rendering& rendering, const Text& self,
                       const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "expandtabs", args, {"tabsize"});
  const int64_t size = IntegerOr(rendering, "expandtabs", bound[0], 8);
  TextBuilder out(rendering);
  int64_t column = 0;
  for (size_t at = 0; at < self.size() && rendering.Step();) {
    const size_t end = CharacterEnd(self.bytes(), at);
    const char first = self.bytes()[at];
    if (first == '\t') {
      const int64_t spaces =
          size > 0 ? std::min<int64_t>(size, 1000) - column % size : 0;
      for (int64_t i = 0; i < spaces; ++i) {
        out.Append(" ", self.OriginAt(at));
      }
      column += spaces;
    } else {
      out.Append(self, at, end);
      column = first == '\n' || first == '\r' ? 0 : column + 1;
    }
    at = end;
  }
  return MakeString(rendering, out.TakeText());
}

// str.isdigit and its like: true if there is a character and all of them are.
template <typename Is>
Value AllAre(Rendering& rendering, const Text& self, Is is) {
  rendering.StepBytes(self.size());
  for (size_t at = 0; at < self.size(); at = CharacterEnd(self.bytes(), at)) {
    if (!is(ClassAt(self.bytes(), at))) return false;
  }
  return !self.empty();
}

// str.isupper and str.islower: a letter has this case and none another.
Value AllCased(Rendering& rendering, const Text& self, bool upper) {
  rendering.StepBytes(self.size());
  bool has_letter = false;
  for (size_t at = 0; at < self.size(); at = CharacterEnd(self.bytes(), at)) {
    const CharacterClass of = ClassAt(self.bytes(), at);
    if (of.cased() && !(upper ? of.upper : of.lower)) return false;
    has_letter = has_letter || of.cased();
  }
  return has_letter;
}

Value IsTitle(Rendering& rendering, const Text& self) {
  rendering.StepBytes(self.size());
  bool within = false;
  bool has_letter = false;
  for (size_t at = 0; at < self.size(); at = CharacterEnd(self.bytes(), at)) {
    const CharacterClass of = ClassAt(self.bytes(), at);
    if (of.cased() && of.lower != within) return false;
    within = of.cased();
    has_letter = has_letter || of.cased();
  }
  return has_letter;
}

Value IsIdentifier(Rendering& rendering, const Text& self) {
  rendering.StepBytes(self.size());
  for (size_t at = 0; at < self.size(); at = CharacterEnd(self.bytes(), at)) {
    const CharacterClass of = ClassAt(self.bytes(), at);
    const bool part = of.letter || self.bytes()[at] == '_';
    if (!part && !(at > 0 && of.decimal)) return false;
  }
  return !self.empty();
}

// The part of a text that start and stop, as in a slice, leave; its offset in
// bytes comes with it.
struct Part {
  Text text;
  size_t begin = 0;
};
Part PartOf(Rendering& rendering, std::string_view who, const Text& self,
            const Value& start, const Value& stop) {
  if (IsAbsent(start) && IsAbsent(stop)) return {self, 0};
  const auto size = static_cast<int64_t>(CountCharacters(self.bytes()));
  const auto offset = [&](const Value& given, int64_t absent) {
    int64_t at = IntegerOr(rendering, who, given, absent);
    at = std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
    size_t byte = 0;
    for (; at > 0; --at) byte = CharacterEnd(self.bytes(), byte);
    return byte;
  };
  const size_t begin = offset(start, 0);
  const size_t end = std::max(begin, offset(stop, size));
  return {self.Cut(begin, end), begin};
}

Value FindMethod(Rendering& rendering, const Text& self, const Args& args,
                 bool from_right, bool must_be_there) {
  const std::string_view who = must_be_there ? "index" : "find";
  const std::vector<Value> bound =
      Bind(rendering, who, args, {"sub", "start", "end"}, 1);
  const Text* mark = NeedText(rendering, who, bound[0]);
  if (mark == nullptr) return Undefined{};
  rendering.StepBytes(self.size());
  const Part part = PartOf(rendering, who, self, bound[1], bound[2]);
  const size_t at = from_right ? part.text.bytes().rfind(mark->bytes())
                               : part.text.bytes().find(mark->bytes());
  if (at == std::string_view::npos) {
    if (must_be_there) rendering.Fail("index: the text is not in the string");
    return int64_t{-1};
  }
  return static_cast<int64_t>(
      CountCharacters(self.bytes().substr(0, part.begin + at)));
}

Value CountMethod(Rendering& rendering, const Text& whole, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "count", args, {"sub", "start", "end"}, 1);
  const Text* part = NeedText(rendering, "count", bound[0]);
  if (part == nullptr) return Undefined{};
  rendering.StepBytes(whole.size());
  const Text self = PartOf(rendering, "count", whole, bound[1], bound[2]).text;
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

Value AffixMethod(Rendering& rendering, const Text& whole, const Args& args,
                  bool at_end) {
  const std::string_view who = at_end ? "endswith" : "startswith";
  const std::vector<Value> bound =
      Bind(rendering, who, args, {"affix", "start", "end"}, 1);
  const Text self = PartOf(rendering, who, whole, bound[1], bound[2]).text;
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

using StringMethod = Value (*)(Rendering&, const Text& self, const Args&);

constexpr BuiltinEntry<StringMethod> kStringMethods[] = {
    {"capitalize",
     [](Rendering& rendering, const Text& s, const Args&) {
       return WithCase(rendering, s, Case::kCapital);
     }},
    {"casefold",
     [](Rendering& rendering, const Text& s, const Args&) {
       return WithCase(rendering, s, Case::kFolded);
     }},
    {"center",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return JustifyMethod(rendering, s, a, "center", '^');
     }},
    {"count", CountMethod},
    {"endswith",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return AffixMethod(rendering, s, a, /*at_end=*/true);
     }},
    {"expandtabs", ExpandTabsMethod},
    {"find",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return FindMethod(rendering, s, a, /*from_right=*/false,
                         /*must_be_there=*/false);
     }},
    {"format", FormatBraces},
    {"format_map",
     [](Rendering& rendering, const Text& s, const Args& a) {
       const Value map = Bind(rendering, "format_map", a, {"map"}, 1)[0];
       Args named;
       if (const Dict* dict = map.IfRef<Dict>()) {
         for (const auto& [key, value] : dict->items) {
           named.named.emplace_back(Str(rendering, key).bytes(), value);
         }
       }
       return FormatBraces(rendering, s, named);
     }},
    {"index",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return FindMethod(rendering, s, a, /*from_right=*/false,
                         /*must_be_there=*/true);
     }},
    {"isalnum",
     [](Rendering& rendering, const Text& s, const Args&) {
       return AllAre(rendering, s, [](const CharacterClass& c) {
         return c.letter || c.numeric;
       });
     }},
    {"isalpha",
     [](Rendering& rendering, const Text& s, const Args&) {
       return AllAre(rendering, s,
                     [](const CharacterClass& c) { return c.letter; });
     }},
    {"isascii",
     [](Rendering& rendering, const Text& s, const Args&) -> Value {
       rendering.StepBytes(s.size());
       return std::none_of(s.bytes().begin(), s.bytes().end(), [](char byte) {
         return static_cast<unsigned char>(byte) >= 0x80;
       });
     }},
    {"isdecimal",
     [](Rendering& rendering, const Text& s, const Args&) {
       return AllAre(rendering, s,
                     [](const CharacterClass& c) { return c.decimal; });
     }},
    {"isdigit",
     [](Rendering& rendering, const Text& s, const Args&) {
       return AllAre(rendering, s,
                     [](const CharacterClass& c) { return c.digit; });
     }},
    {"isidentifier", [](Rendering& rendering, const Text& s,
                        const Args&) { return IsIdentifier(rendering, s); }},
    {"islower",
     [](Rendering& rendering, const Text& s, const Args&) {
       return AllCased(rendering, s, /*upper=*/false);
     }},
    {"isnumeric",
     [](Rendering& rendering, const Text& s, const Args&) {
       return AllAre(rendering, s,
                     [](const CharacterClass& c) { return c.numeric; });
     }},
    {"isprintable",
     [](Rendering& rendering, const Text& s, const Args&) -> Value {
       return s.empty() ||
              Truth(AllAre(rendering, s, [](const CharacterClass& c) {
                return c.printable;
              }));
     }},
    {"isspace",
     [](Rendering& rendering, const Text& s, const Args&) -> Value {
       rendering.StepBytes(s.size());
       return !s.empty() && Strip(s, nullptr, Side::kBoth).empty();
     }},
    {"istitle", [](Rendering& rendering, const Text& s,
                   const Args&) { return IsTitle(rendering, s); }},
    {"isupper",
     [](Rendering& rendering, const Text& s, const Args&) {
       return AllCased(rendering, s, /*upper=*/true);
     }},
    {"join", JoinMethod},
    {"ljust",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return JustifyMethod(rendering, s, a, "ljust", '<');
     }},
    {"lower", [](Rendering& rendering, const Text& s,
                 const Args&) { return WithCase(rendering, s, Case::kLower); }},
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
       return FindMethod(rendering, s, a, /*from_right=*/true,
                         /*must_be_there=*/false);
     }},
    {"rindex",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return FindMethod(rendering, s, a, /*from_right=*/true,
                         /*must_be_there=*/true);
     }},
    {"rjust",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return JustifyMethod(rendering, s, a, "rjust", '>');
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
     [](Rendering& rendering, const Text& s, const Args& a) {
       const Value keeps = Bind(rendering, "splitlines", a, {"keepends"})[0];
       return MakeList(rendering, SplitLines(rendering, s, Truth(keeps)));
     }},
    {"startswith",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return AffixMethod(rendering, s, a, /*at_end=*/false);
     }},
    {"strip",
     [](Rendering& rendering, const Text& s, const Args& a) {
       return StripMethod(rendering, s, a, Side::kBoth);
     }},
    {"swapcase",
     [](Rendering& rendering, const Text& s, const Args&) {
       return WithCase(rendering, s, Case::kSwapped);
     }},
    {"title", [](Rendering& rendering, const Text& s,
                 const Args&) { return WithCase(rendering, s, Case::kTitle); }},
    {"upper", [](Rendering& rendering, const Text& s,
                 const Args&) { return WithCase(rendering, s, Case::kUpper); }},
    {"zfill", ZfillMethod},
};

}  // namespace

Value GetStringMethod(Rendering& rendering, const Value& self,
                      const std::string& name) {
  const StringMethod method = FindIn(kStringMethods, name);
  if (method == nullptr) return Undefined{&name};
  return MakeFunction(name, self, [&rendering, self, method](const Args& args) {
    return method(rendering, *self.IfText(), args);
  });
}

}  // namespace tiercel::jinja
