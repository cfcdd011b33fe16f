// The filters of `value | filter` for lists and whatever can be iterated.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "models/chat/builtins.h"
#include "models/chat/format.h"

namespace tiercel::jinja {
namespace {

// The items a filter works on; none after a failure.
class Items {
 public:
  Items(Run& run, const Value& input) : list_(Iterate(run, input)) {}

  const Value* begin() const {
    return list_ == nullptr ? nullptr : list_->items.data();
  }
  const Value* end() const { return begin() + size(); }
  size_t size() const { return list_ == nullptr ? 0 : list_->items.size(); }
  const Value& operator[](size_t i) const { return list_->items[i]; }

 private:
  const std::shared_ptr<const List> list_;
};

Value JoinFilter(Run& run, const Value& input, const Args& args) {
  const std::vector<Value> bound = Bind(run, "join", args, {"d", "attribute"});
  const Text separator = Str(run, bound[0]);
  if (bound[1].IsUndefined()) return Join(run, input, separator);
  std::vector<Value> parts;
  for (const Value& item : Items(run, input)) {
    parts.push_back(GetItem(run, item, bound[1]));
    if (!run.ok()) return Undefined{};
  }
  return Join(run, MakeList(run, std::move(parts)), separator);
}

Value SumFilter(Run& run, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(run, "sum", args, {"attribute", "start"});
  int64_t integers = 0;
  double reals = 0;
  bool has_real = false;
  const Items items(run, input);
  std::vector<Value> terms(items.begin(), items.end());
  if (!bound[0].IsUndefined()) {
    for (Value& term : terms) term = GetItem(run, term, bound[0]);
  }
  if (!bound[1].IsUndefined()) terms.push_back(bound[1]);
  for (const Value& term : terms) {
    const std::optional<int64_t> integer = term.IfInteger();
    const std::optional<double> number = term.IfNumber();
    if (!number.has_value()) {
      FailKind(run, "sum", term, "numbers");
      return Undefined{};
    }
    if (!integer.has_value()) {
      has_real = true;
      reals += *number;
    } else if (__builtin_add_overflow(integers, *integer, &integers)) {
      run.Fail("an integer is out of range");
      return Undefined{};
    }
  }
  if (has_real) return reals + static_cast<double>(integers);
  return integers;
}

Value LengthFilter(Run& run, const Value& input, const Args&) {
  if (const Text* text = input.IfText()) {
    run.StepBytes(text->size());
    return static_cast<int64_t>(CountCharacters(text->bytes()));
  }
  if (const List* list = input.IfRef<List>()) {
    return static_cast<int64_t>(list->items.size());
  }
  if (const Dict* dict = input.IfRef<Dict>()) {
    return static_cast<int64_t>(dict->items.size());
  }
  if (input.IsUndefined()) return int64_t{0};
  FailKind(run, "length", input, "a string, a list or a dict");
  return Undefined{};
}

Value FirstFilter(Run& run, const Value& input, const Args&) {
  const Items items(run, input);
  return items.size() == 0 ? Undefined{} : items[0];
}

Value LastFilter(Run& run, const Value& input, const Args&) {
  const Items items(run, input);
  return items.size() == 0 ? Undefined{} : items[items.size() - 1];
}

Value ListFilter(Run& run, const Value& input, const Args&) {
  const Items items(run, input);
  return MakeList(run, std::vector<Value>(items.begin(), items.end()));
}

Value ReverseFilter(Run& run, const Value& input, const Args&) {
  const Items items(run, input);
  std::vector<Value> backwards(items.begin(), items.end());
  std::reverse(backwards.begin(), backwards.end());
  const Value reversed = MakeList(run, std::move(backwards));
  return input.IfText() == nullptr ? reversed : Join(run, reversed, Text());
}

Value ItemsFilter(Run& run, const Value& input, const Args&) {
  if (input.IsUndefined()) return MakeList(run, {});
  const Dict* dict = input.IfRef<Dict>();
  if (dict == nullptr) {
    FailKind(run, "items", input, "a dict");
    return Undefined{};
  }
  std::vector<Value> items;
  for (const auto& [key, value] : dict->items) {
    items.push_back(MakeList(run, {key, value}, /*tuple=*/true));
    if (!run.ok()) return Undefined{};
  }
  return MakeList(run, std::move(items));
}

// A value as sorting sees it: without case unless that matters.
Value SortKey(Run& run, const Value& value, bool case_sensitive) {
  const Text* text = value.IfText();
  if (case_sensitive || text == nullptr) return value;
  return MakeString(run, text->Mapped(Lower));
}

// Sorts `items` by key, stably; merge sort is ours since a failed run orders
// nothing, which std::stable_sort must not see.
std::vector<Value> SortBy(Run& run, const Items& items,
                          const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<size_t> merged(order.size());
  for (size_t width = 1; width < order.size() && run.ok(); width *= 2) {
    for (size_t begin = 0; begin < order.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, order.size());
      const size_t end = std::min(begin + 2 * width, order.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t i = begin; i < end; ++i) {
        const bool take_right =
            left == middle ||
            (right < end &&
             (reverse ? Less(run, keys[order[left]], keys[order[right]])
                      : Less(run, keys[order[right]], keys[order[left]])));
        merged[i] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  std::vector<Value> sorted;
  for (const size_t i : order) sorted.push_back(items[i]);
  return sorted;
}

Value SortFilter(Run& run, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(run, "sort", args, {"reverse", "case_sensitive", "attribute"});
  const Items items(run, input);
  std::vector<Value> keys;
  for (const Value& item : items) {
    const Value key =
        bound[2].IsUndefined() ? item : GetItem(run, item, bound[2]);
    keys.push_back(SortKey(run, key, Truth(bound[1])));
    if (!run.ok()) return Undefined{};
  }
  return MakeList(run, SortBy(run, items, keys, Truth(bound[0])));
}

Value DictSortFilter(Run& run, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(run, "dictsort", args, {"case_sensitive", "by", "reverse"});
  const Text* by = bound[1].IfText();
  const size_t part = by != nullptr && by->bytes() == "value" ? 1 : 0;
  const Items items(run, ItemsFilter(run, input, {}));
  std::vector<Value> keys;
  for (const Value& item : items) {
    keys.push_back(
        SortKey(run, item.IfRef<List>()->items[part], Truth(bound[0])));
    if (!run.ok()) return Undefined{};
  }
  return MakeList(run, SortBy(run, items, keys, Truth(bound[2])));
}

Value UniqueFilter(Run& run, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(run, "unique", args, {"case_sensitive"});
  std::vector<Value> kept;
  std::vector<Value> keys;
  for (const Value& item : Items(run, input)) {
    const Value key = SortKey(run, item, Truth(bound[0]));
    const bool seen =
        std::any_of(keys.begin(), keys.end(),
                    [&](const Value& other) { return Equal(run, key, other); });
    if (!run.ok()) return Undefined{};
    if (seen) continue;
    keys.push_back(key);
    kept.push_back(item);
  }
  return MakeList(run, std::move(kept));
}

Value Extreme(Run& run, const Value& input, bool least) {
  const Items items(run, input);
  if (items.size() == 0) return Undefined{};
  size_t best = 0;
  for (size_t i = 1; i < items.size() && run.ok(); ++i) {
    const Value a = SortKey(run, items[i], /*case_sensitive=*/false);
    const Value b = SortKey(run, items[best], /*case_sensitive=*/false);
    if (least ? Less(run, a, b) : Less(run, b, a)) best = i;
  }
  return items[best];
}

// The value of a dotted attribute path, as map and select take it.
Value GetPath(Run& run, const Value& item, const Value& path) {
  const Text* text = path.IfText();
  if (text == nullptr) return GetItem(run, item, path);
  Value value = item;
  const std::string_view bytes = text->bytes();
  for (size_t begin = 0; begin <= bytes.size() && run.Step();) {
    const size_t end = std::min(bytes.find('.', begin), bytes.size());
    value =
        GetItem(run, value, MakeString(run, bytes.substr(begin, end - begin)));
    begin = end + 1;
  }
  return value;
}

Value MapFilter(Run& run, const Value& input, const Args& args) {
  if (!Truth(input)) return MakeList(run, {});  // none has no items either
  std::vector<Value> mapped;
  if (args.positional.empty()) {
    const std::vector<Value> bound =
        Bind(run, "map", args, {"attribute", "default"});
    for (const Value& item : Items(run, input)) {
      const Value value = GetPath(run, item, bound[0]);
      mapped.push_back(value.IsUndefined() ? bound[1] : value);
      if (!run.ok()) return Undefined{};
    }
    return MakeList(run, std::move(mapped));
  }
  const Text name = Str(run, args.positional[0]);
  const Filter filter = FindFilter(name.bytes());
  if (filter == nullptr) {
    run.Fail(absl::StrCat("no filter is named '", Abseil(name.bytes()), "'"));
    return Undefined{};
  }
  const Args rest{{args.positional.begin() + 1, args.positional.end()},
                  args.named};
  for (const Value& item : Items(run, input)) {
    mapped.push_back(filter(run, item, rest));
    if (!run.ok()) return Undefined{};
  }
  return MakeList(run, std::move(mapped));
}

// select, reject and their attr forms: those items for which the test named by
// the next argument (truth, where there is none) says `wanted`.
Value Choose(Run& run, const Value& input, const Args& args, bool by_attribute,
             bool wanted) {
  if (!Truth(input)) return MakeList(run, {});
  const size_t skip = by_attribute ? 1 : 0;
  if (args.positional.size() < skip) {
    run.Fail("selectattr: needs an attribute");
    return Undefined{};
  }
  Test test = nullptr;
  Args rest;
  if (args.positional.size() > skip) {
    const Text name = Str(run, args.positional[skip]);
    test = FindTest(name.bytes());
    if (test == nullptr) {
      run.Fail(absl::StrCat("no test is named '", Abseil(name.bytes()), "'"));
      return Undefined{};
    }
    rest.positional.assign(
        args.positional.begin() + static_cast<std::ptrdiff_t>(skip) + 1,
        args.positional.end());
  }
  std::vector<Value> chosen;
  for (const Value& item : Items(run, input)) {
    const Value value =
        by_attribute ? GetPath(run, item, args.positional[0]) : item;
    const bool holds = test == nullptr ? Truth(value) : test(run, value, rest);
    if (!run.Step()) return Undefined{};
    if (holds == wanted) chosen.push_back(item);
  }
  return MakeList(run, std::move(chosen));
}

constexpr FilterEntry kListFilters[] = {
    {"count", LengthFilter},
    {"dictsort", DictSortFilter},
    {"first", FirstFilter},
    {"items", ItemsFilter},
    {"join", JoinFilter},
    {"last", LastFilter},
    {"length", LengthFilter},
    {"list", ListFilter},
    {"map", MapFilter},
    {"max", [](Run& run, const Value& v,
               const Args&) { return Extreme(run, v, /*least=*/false); }},
    {"min", [](Run& run, const Value& v,
               const Args&) { return Extreme(run, v, /*least=*/true); }},
    {"reject",
     [](Run& run, const Value& v, const Args& args) {
       return Choose(run, v, args, /*by_attribute=*/false, /*wanted=*/false);
     }},
    {"rejectattr",
     [](Run& run, const Value& v, const Args& args) {
       return Choose(run, v, args, /*by_attribute=*/true, /*wanted=*/false);
     }},
    {"reverse", ReverseFilter},
    {"select",
     [](Run& run, const Value& v, const Args& args) {
       return Choose(run, v, args, /*by_attribute=*/false, /*wanted=*/true);
     }},
    {"selectattr",
     [](Run& run, const Value& v, const Args& args) {
       return Choose(run, v, args, /*by_attribute=*/true, /*wanted=*/true);
     }},
    {"sort", SortFilter},
    {"sum", SumFilter},
    {"unique", UniqueFilter},
};

}  // namespace

Filter FindListFilter(std::string_view name) {
  for (const FilterEntry& entry : kListFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace tiercel::jinja
