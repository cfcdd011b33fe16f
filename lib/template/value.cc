#include "lib/template/value.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tiercel::jinja {
namespace {

// The cost of an object besides its contents: reference counts, capacity.
constexpr size_t kObjectBytes = 64;

int Deepest(const std::vector<Value>& items) {
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, DepthOf(item));
  return deepest;
}

bool CheckDepth(Rendering& rendering, int depth) {
  if (depth <= kMaxValueDepth) return true;
  rendering.Fail("a value is nested too deeply");
  return false;
}

bool EqualLists(Rendering& rendering, const List& a, const List& b) {
  if (a.tuple != b.tuple || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!Equal(rendering, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool EqualDicts(Rendering& rendering, const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* other = Find(rendering, b, key);
    if (other == nullptr || !Equal(rendering, value, *other)) return false;
  }
  return true;
}

}  // namespace

const Text* Value::IfText() const {
  const String* string = IfRef<String>();
  return string == nullptr ? nullptr : &string->text;
}

Scope* Value::IfNamespace() const {
  const auto* pointer = If<std::shared_ptr<Scope>>();
  return pointer == nullptr ? nullptr : pointer->get();
}

Loop* Value::IfLoop() const {
  const auto* pointer = If<std::shared_ptr<Loop>>();
  return pointer == nullptr ? nullptr : pointer->get();
}

std::optional<int64_t> Value::IfInteger() const {
  if (const bool* boolean = If<bool>()) return *boolean ? 1 : 0;
  if (const int64_t* integer = If<int64_t>()) return *integer;
  return std::nullopt;
}

std::optional<double> Value::IfNumber() const {
  if (const double* real = If<double>()) return *real;
  const std::optional<int64_t> integer = IfInteger();
  if (integer.has_value()) return static_cast<double>(*integer);
  return std::nullopt;
}

const Value* Scope::FindOwn(std::string_view name) const {
  for (const Entry& entry : names) {
    if (entry.name == name) return &entry.value;
  }
  return nullptr;
}

void Scope::Set(std::string_view name, Value value) {
  for (Entry& entry : names) {
    if (entry.name == name) {
      entry.value = std::move(value);
      return;
    }
  }
  if (charge.Grow(sizeof(Entry) + name.size())) {
    names.push_back({std::string(name), std::move(value)});
  }
}

int DepthOf(const Value& value) {
  if (const List* list = value.IfRef<List>()) return list->depth;
  if (const Dict* dict = value.IfRef<Dict>()) return dict->depth;
  if (const Function* function = value.IfRef<Function>()) {
    return function->depth;
  }
  if (const Loop* loop = value.IfLoop()) return loop->items->depth + 1;
  return 0;
}

bool Truth(const Value& value) {
  if (value.IsUndefined() || value.Is<None>()) return false;
  if (const std::optional<double> number = value.IfNumber()) {
    return *number != 0;
  }
  if (const Text* text = value.IfText()) return !text->empty();
  if (const List* list = value.IfRef<List>()) return !list->items.empty();
  if (const Dict* dict = value.IfRef<Dict>()) return !dict->items.empty();
  return true;
}

std::string_view KindOf(const Value& value) {
  if (value.IsUndefined()) return "undefined value";
  if (value.Is<None>()) return "none";
  if (value.Is<bool>()) return "boolean";
  if (value.Is<int64_t>()) return "integer";
  if (value.Is<double>()) return "float";
  if (value.IfText() != nullptr) return "string";
  if (const List* list = value.IfRef<List>()) {
    return list->tuple ? "tuple" : "list";
  }
  if (value.IfRef<Dict>() != nullptr) return "dict";
  if (value.IfNamespace() != nullptr) return "namespace";
  if (value.IfLoop() != nullptr) return "loop";
  return "function";
}

bool Equal(Rendering& rendering, const Value& a, const Value& b) {
  if (!rendering.Step()) return false;
  if (const Text* text = a.IfText()) {
    const Text* other = b.IfText();
    return other != nullptr && rendering.StepBytes(text->size()) &&
           text->bytes() == other->bytes();
  }
  const std::optional<int64_t> integer = a.IfInteger();
  const std::optional<int64_t> other_integer = b.IfInteger();
  if (integer.has_value() && other_integer.has_value()) {
    return *integer == *other_integer;
  }
  const std::optional<double> number = a.IfNumber();
  const std::optional<double> other_number = b.IfNumber();
  if (number.has_value() || other_number.has_value()) {
    return number.has_value() && other_number.has_value() &&
           *number == *other_number;
  }
  if (a.index() != b.index()) return false;
  if (const List* list = a.IfRef<List>()) {
    return EqualLists(rendering, *list, *b.IfRef<List>());
  }
  if (const Dict* dict = a.IfRef<Dict>()) {
    return EqualDicts(rendering, *dict, *b.IfRef<Dict>());
  }
  if (a.IsUndefined() || a.Is<None>()) return true;
  if (a.IfNamespace() != nullptr) return a.IfNamespace() == b.IfNamespace();
  if (a.IfLoop() != nullptr) return a.IfLoop() == b.IfLoop();
  return a.IfRef<Function>() == b.IfRef<Function>();
}

bool Less(Rendering& rendering, const Value& a, const Value& b) {
  if (!rendering.Step()) return false;
  const std::optional<int64_t> integer = a.IfInteger();
  const std::optional<int64_t> other_integer = b.IfInteger();
  if (integer.has_value() && other_integer.has_value()) {
    return *integer < *other_integer;
  }
  const std::optional<double> number = a.IfNumber();
  const std::optional<double> other_number = b.IfNumber();
  if (number.has_value() && other_number.has_value()) {
    return *number < *other_number;
  }
  const Text* text = a.IfText();
  const Text* other_text = b.IfText();
  if (text != nullptr && other_text != nullptr) {
    // UTF-8 sorts by bytes as it does by code points.
    rendering.StepBytes(text->size());
    return text->bytes() < other_text->bytes();
  }
  const List* list = a.IfRef<List>();
  const List* other_list = b.IfRef<List>();
  if (list != nullptr && other_list != nullptr &&
      list->tuple == other_list->tuple) {
    const size_t common =
        std::min(list->items.size(), other_list->items.size());
    for (size_t i = 0; i < common && rendering.ok(); ++i) {
      if (!Equal(rendering, list->items[i], other_list->items[i])) {
        return Less(rendering, list->items[i], other_list->items[i]);
      }
    }
    return list->items.size() < other_list->items.size();
  }
  rendering.Fail(absl::StrCat("cannot order ", Abseil(KindOf(a)), " and ",
                              Abseil(KindOf(b))));
  return false;
}

bool Contains(Rendering& rendering, const Value& haystack,
              const Value& needle) {
  if (const Text* text = haystack.IfText()) {
    const Text* part = needle.IfText();
    if (part == nullptr) {
      rendering.Fail(absl::StrCat("'in <string>' needs a string, got ",
                                  Abseil(KindOf(needle))));
      return false;
    }
    rendering.StepBytes(text->size());
    return text->bytes().find(part->bytes()) != std::string_view::npos;
  }
  if (const Dict* dict = haystack.IfRef<Dict>()) {
    return Find(rendering, *dict, needle) != nullptr;
  }
  const std::shared_ptr<const List> list = Iterate(rendering, haystack);
  if (list == nullptr) return false;
  for (const Value& item : list->items) {
    if (Equal(rendering, item, needle)) return true;
    if (!rendering.ok()) return false;
  }
  return false;
}

const Value* Find(Rendering& rendering, const Dict& dict, const Value& key) {
  for (const auto& [name, value] : dict.items) {
    if (Equal(rendering, name, key)) return &value;
    if (!rendering.ok()) return nullptr;
  }
  return nullptr;
}

const Value* Find(Rendering& rendering, const Dict& dict,
                  std::string_view key) {
  for (const auto& [name, value] : dict.items) {
    if (!rendering.Step()) return nullptr;
    const Text* text = name.IfText();
    if (text != nullptr && text->bytes() == key) return &value;
  }
  return nullptr;
}

Value MakeString(Rendering& rendering, Text text) {
  Charge charge(rendering);
  charge.Grow(kObjectBytes + text.size() + text.num_flips() * sizeof(size_t));
  if (!rendering.StepBytes(text.size())) return Undefined{};
  return std::make_shared<const String>(
      String{std::move(text), std::move(charge)});
}

Value MakeString(Rendering& rendering, std::string_view text) {
  return MakeString(rendering, Text(text));
}

Value MakeList(Rendering& rendering, std::vector<Value> items, bool tuple,
               std::vector<std::string_view> names) {
  Charge charge(rendering);
  charge.Grow(kObjectBytes + items.size() * sizeof(Value));
  const int depth = 1 + Deepest(items);
  if (!rendering.Step(1 + items.size() / 8) || !CheckDepth(rendering, depth)) {
    return Undefined{};
  }
  return std::make_shared<const List>(List{
      std::move(items), tuple, depth, std::move(charge), std::move(names)});
}

Value MakeDict(Rendering& rendering, std::vector<Dict::Item> items) {
  Charge charge(rendering);
  charge.Grow(kObjectBytes + items.size() * sizeof(Dict::Item));
  int depth = 1;
  for (const auto& [key, value] : items) {
    depth = std::max({depth, 1 + DepthOf(key), 1 + DepthOf(value)});
  }
  if (!rendering.Step(1 + items.size() / 8) || !CheckDepth(rendering, depth)) {
    return Undefined{};
  }
  return std::make_shared<const Dict>(
      Dict{std::move(items), depth, std::move(charge)});
}

Value MakeFunction(std::string name, const Value& self,
                   std::function<Value(const Args&)> call) {
  return std::make_shared<const Function>(
      Function{std::move(name), DepthOf(self) + 1, std::move(call)});
}

std::shared_ptr<const List> Iterate(Rendering& rendering, const Value& value) {
  if (const auto* list = value.If<std::shared_ptr<const List>>()) return *list;
  std::vector<Value> items;
  if (const Text* text = value.IfText()) {
    for (size_t begin = 0; begin < text->size();) {
      const size_t end = CharacterEnd(text->bytes(), begin);
      items.push_back(MakeString(rendering, text->Cut(begin, end)));
      if (!rendering.ok()) return nullptr;
      begin = end;
    }
  } else if (const Dict* dict = value.IfRef<Dict>()) {
    for (const auto& [key, unused] : dict->items) items.push_back(key);
  } else if (!value.IsUndefined()) {
    rendering.Fail(absl::StrCat(Abseil(KindOf(value)), " cannot be iterated"));
    return nullptr;
  }
  const Value list = MakeList(rendering, std::move(items));
  const auto* pointer = list.If<std::shared_ptr<const List>>();
  return pointer == nullptr ? nullptr : *pointer;
}

}  // namespace tiercel::jinja
