// Attributes and items of values, and the methods of dicts, lists and loops.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/template/builtins.h"

namespace tiercel::jinja {
namespace {

enum class DictPart { kItems, kKeys, kValues };

Value DictParts(Rendering& rendering, const Dict& dict, DictPart part) {
  std::vector<Value> items;
  for (const auto& [key, value] : dict.items) {
    items.push_back(part == DictPart::kKeys ? key
                    : part == DictPart::kValues
                        ? value
                        : MakeList(rendering, {key, value},
                                   /*tuple=*/true));
    if (!rendering.ok()) return Undefined{};
  }
  return MakeList(rendering, std::move(items));
}

// Returns a dict's method, bound to it; undefined if there is none of that
// name.
Value DictMethod(Rendering& rendering, const Value& self,
                 const std::string& name) {
  const auto parts = [&rendering, &name, &self](DictPart part) {
    return MakeFunction(name, self, [&rendering, self, part](const Args& args) {
      Bind(rendering, "a dict's method", args, {});
      return DictParts(rendering, *self.IfRef<Dict>(), part);
    });
  };
  if (name == "items") return parts(DictPart::kItems);
  if (name == "keys") return parts(DictPart::kKeys);
  if (name == "values") return parts(DictPart::kValues);
  if (name == "copy") {
    return MakeFunction(name, self, [self](const Args&) { return self; });
  }
  if (name != "get") return Undefined{&name};
  return MakeFunction(
      name, self, [&rendering, self](const Args& args) -> Value {
        const std::vector<Value> bound =
            Bind(rendering, "get", args, {"key", "default"}, 1);
        if (!args.named.empty()) rendering.Fail("get: takes no names");
        const Value* found = Find(rendering, *self.IfRef<Dict>(), bound[0]);
        if (found != nullptr) return *found;
        return args.positional.size() > 1 ? bound[1] : Value(None{});
      });
}

Value ListMethod(Rendering& rendering, const Value& self,
                 const std::string& name) {
  const List& list = *self.IfRef<List>();
  for (size_t i = 0; i < list.names.size(); ++i) {
    if (list.names[i] == name) return list.items[i];
  }
  if (name == "copy" && !list.tuple) {
    return MakeFunction(name, self, [self](const Args&) { return self; });
  }
  if (name != "index" && name != "count") return Undefined{&name};
  const bool is_index = name == "index";
  return MakeFunction(
      name, self, [&rendering, self, is_index](const Args& args) -> Value {
        const std::vector<Value> bound = Bind(
            rendering, "a list's method", args, {"value", "start", "stop"}, 1);
        const std::vector<Value>& items = self.IfRef<List>()->items;
        const auto size = static_cast<int64_t>(items.size());
        const auto place = [&](const Value& given, int64_t absent) {
          const int64_t at = given.IfInteger().value_or(absent);
          return static_cast<size_t>(
              std::clamp<int64_t>(at < 0 ? at + size : at, 0, size));
        };
        const size_t stop = place(bound[2], size);
        int64_t count = 0;
        for (size_t i = place(bound[1], 0); i < stop && rendering.ok(); ++i) {
          if (!Equal(rendering, items[i], bound[0])) continue;
          if (is_index) return static_cast<int64_t>(i);
          ++count;
        }
        if (is_index) rendering.Fail("index: the value is not in the list");
        return count;
      });
}

Value LoopAttribute(Rendering& rendering, const Value& self,
                    const std::string& name) {
  const Loop& loop = *self.IfLoop();
  const std::vector<Value>& items = loop.items->items;
  const auto index = static_cast<int64_t>(loop.index);
  const auto length = static_cast<int64_t>(items.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return length - index;
  if (name == "revindex0") return length - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == length;
  if (name == "length") return length;
  if (name == "depth") return loop.depth + 1;
  if (name == "depth0") return loop.depth;
  if (name == "previtem" && index > 0) return items[loop.index - 1];
  if (name == "nextitem" && index + 1 < length) return items[loop.index + 1];
  if (name == "changed") {
    return MakeFunction(name, self, [&rendering, self](const Args& args) {
      Value values = MakeList(rendering, args.positional, /*tuple=*/true);
      Value& last = *self.IfLoop()->last;
      const bool same = !last.IsUndefined() && Equal(rendering, last, values);
      last = std::move(values);
      return !same;
    });
  }
  if (name != "cycle") return Undefined{&name};
  return MakeFunction(
      name, self, [&rendering, self](const Args& args) -> Value {
        if (args.positional.empty()) {
          rendering.Fail("cycle: needs an argument");
          return Undefined{};
        }
        return args.positional[self.IfLoop()->index % args.positional.size()];
      });
}

Value FindAttribute(Rendering& rendering, const Value& value,
                    const std::string& name) {
  if (value.IfText() != nullptr) {
    return GetStringMethod(rendering, value, name);
  } else if (value.IfRef<Dict>() != nullptr) {
    return DictMethod(rendering, value, name);
  } else if (value.IfRef<List>() != nullptr) {
    return ListMethod(rendering, value, name);
  } else if (const Scope* names = value.IfNamespace()) {
    const Value* found = names->FindOwn(name);
    if (found != nullptr) return *found;
  } else if (value.IfLoop() != nullptr) {
    return LoopAttribute(rendering, value, name);
  } else if (const Function* function = value.IfRef<Function>()) {
    if (name == "name") return MakeString(rendering, function->name);
  }
  return Undefined{&name};
}

bool FailUndefined(Rendering& rendering, const Value& value,
                   std::string_view wanted) {
  const Undefined* undefined = value.If<Undefined>();
  if (undefined == nullptr) return false;
  rendering.Fail(absl::StrCat(undefined->name == nullptr
                                  ? "a value"
                                  : absl::StrCat("'", *undefined->name, "'"),
                              " is undefined and has no ", Abseil(wanted)));
  return true;
}

}  // namespace

Value GetAttribute(Rendering& rendering, const Value& value,
                   const std::string& name) {
  if (FailUndefined(rendering, value, absl::StrCat("'", name, "'"))) {
    return Undefined{};
  }
  const Value attribute = FindAttribute(rendering, value, name);
  if (!attribute.IsUndefined()) return attribute;
  if (const Dict* dict = value.IfRef<Dict>()) {
    const Value* found = Find(rendering, *dict, name);
    if (found != nullptr) return *found;
  }
  return Undefined{&name};
}

Value GetItem(Rendering& rendering, const Value& value, const Value& key) {
  if (FailUndefined(rendering, value, "items")) return Undefined{};
  if (const Dict* dict = value.IfRef<Dict>()) {
    const Value* found = Find(rendering, *dict, key);
    if (found != nullptr) return *found;
  }
  std::optional<int64_t> index = key.IfInteger();
  if (const List* list = value.IfRef<List>(); list != nullptr && index) {
    const auto size = static_cast<int64_t>(list->items.size());
    if (*index < 0) *index += size;
    if (*index < 0 || *index >= size) return Undefined{};
    return list->items[static_cast<size_t>(*index)];
  }
  if (const Text* text = value.IfText(); text != nullptr && index) {
    const std::string_view bytes = text->bytes();
    rendering.StepBytes(bytes.size());
    if (*index < 0) *index += static_cast<int64_t>(CountCharacters(bytes));
    if (*index < 0) return Undefined{};
    size_t begin = 0;
    for (; begin < bytes.size() && *index > 0; --*index) {
      begin = CharacterEnd(bytes, begin);
    }
    if (begin == bytes.size()) return Undefined{};
    return MakeString(rendering, text->Cut(begin, CharacterEnd(bytes, begin)));
  }
  // The result must not refer to the name in the short-lived key.
  if (const Text* name = key.IfText()) {
    Value found = FindAttribute(rendering, value, std::string(name->bytes()));
    if (!found.IsUndefined()) return found;
  }
  return Undefined{};
}

}  // namespace tiercel::jinja
