// The filters of `value | filter` for lists and other iterables.

#include <algorithm>
#include <charconv>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/template/builtins.h"
#include "lib/template/format.h"
#include "lib/template/letter_case.h"
#include "lib/template/operators.h"

namespace tiercel::jinja {
namespace {

// The items on which a filter works; none after a failure.
class Items {
 public:
  Items(Rendering& rendering, const Value& input)
      : list_(Iterate(rendering, input)) {}

  const Value* begin() const {
    return list_ == nullptr ? nullptr : list_->items.data();
  }
  const Value* end() const { return begin() + size(); }
  size_t size() const { return list_ == nullptr ? 0 : list_->items.size(); }
  const Value& operator[](size_t i) const { return list_->items[i]; }

 private:
  const std::shared_ptr<const List> list_;
};

// Returns the value of a dotted attribute path, whose parts may be numbers; the
// item itself if the path is undefined.
Value GetPath(Rendering& rendering, const Value& item, const Value& path) {
  if (path.IsUndefined() || path.Is<None>()) return item;
  const Text* text = path.IfText();
  if (text == nullptr) return GetItem(rendering, item, path);
  Value value = item;
  const std::string_view bytes = text->bytes();
  for (size_t begin = 0; begin <= bytes.size() && rendering.Step();) {
    const size_t end = std::min(bytes.find('.', begin), bytes.size());
    const std::string_view part = bytes.substr(begin, end - begin);
    int64_t number = 0;
    const std::from_chars_result read =
        std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number =
        read.ec == std::errc() && read.ptr == part.data() + part.size();
    value = GetItem(rendering, value,
                    is_number ? Value(number) : MakeString(rendering, part));
    begin = end + 1;
  }
  return value;
}

Value JoinFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "join", args, {"d", "attribute"});
  const Text separator = Str(rendering, bound[0]);
  if (bound[1].IsUndefined()) return Join(rendering, input, separator);
  std::vector<Value> parts;
  for (const Value& item : Items(rendering, input)) {
    parts.push_back(GetPath(rendering, item, bound[1]));
    if (!rendering.ok()) return Undefined{};
  }
  return Join(rendering, MakeList(rendering, std::move(parts)), separator);
}

bool IsGiven(const Value& value) {
  return !value.IsUndefined() && !value.Is<None>();
}

Value SumFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "sum", args, {"attribute", "start"});
  Value sum = bound[1].IsUndefined() ? Value(int64_t{0}) : bound[1];
  if (sum.IfText() != nullptr) {
    FailKind(rendering, "sum", sum, "a number or a list to start with");
  }
  for (const Value& item : Items(rendering, input)) {
    if (!rendering.ok()) return Undefined{};
    sum = ApplyBinary(
        rendering, Operator::kAdd, sum,
        IsGiven(bound[0]) ? GetPath(rendering, item, bound[0]) : item);
    // A list is copied whenever another joins it.
    if (const List* list = sum.IfRef<List>()) {
      rendering.StepBytes(list->items.size() * sizeof(Value));
    }
  }
  return sum;
}

Value LengthFilter(Rendering& rendering, const Value& input, const Args&) {
  if (const Text* text = input.IfText()) {
    rendering.StepBytes(text->size());
    return static_cast<int64_t>(CountCharacters(text->bytes()));
  }
  if (const List* list = input.IfRef<List>()) {
    return static_cast<int64_t>(list->items.size());
  }
  if (const Dict* dict = input.IfRef<Dict>()) {
    return static_cast<int64_t>(dict->items.size());
  }
  if (input.IsUndefined()) return int64_t{0};
  FailKind(rendering, "length", input, "a string, a list or a dict");
  return Undefined{};
}

Value FirstFilter(Rendering& rendering, const Value& input, const Args&) {
  const Items items(rendering, input);
  return items.size() == 0 ? Undefined{} : items[0];
}

Value LastFilter(Rendering& rendering, const Value& input, const Args&) {
  const Items items(rendering, input);
  return items.size() == 0 ? Undefined{} : items[items.size() - 1];
}

Value ListFilter(Rendering& rendering, const Value& input, const Args&) {
  const Items items(rendering, input);
  return MakeList(rendering, std::vector<Value>(items.begin(), items.end()));
}

Value ReverseFilter(Rendering& rendering, const Value& input, const Args&) {
  const Items items(rendering, input);
  std::vector<Value> backwards(items.begin(), items.end());
  std::reverse(backwards.begin(), backwards.end());
  const Value reversed = MakeList(rendering, std::move(backwards));
  return input.IfText() == nullptr ? reversed
                                   : Join(rendering, reversed, Text());
}

Value ItemsFilter(Rendering& rendering, const Value& input, const Args&) {
  if (input.IsUndefined()) return MakeList(rendering, {});
  const Dict* dict = input.IfRef<Dict>();
  if (dict == nullptr) {
    FailKind(rendering, "items", input, "a dict");
    return Undefined{};
  }
  std::vector<Value> items;
  for (const auto& [key, value] : dict->items) {
    items.push_back(MakeList(rendering, {key, value}, /*tuple=*/true));
    if (!rendering.ok()) return Undefined{};
  }
  return MakeList(rendering, std::move(items));
}

// Returns the key by which sorting compares a value: without case, unless case
// matters.
Value SortKey(Rendering& rendering, const Value& value, bool case_sensitive) {
  const Text* text = value.IfText();
  if (case_sensitive || text == nullptr) return value;
  return WithCase(rendering, *text, Case::kLower);
}

// Returns the key of an item by an attribute, or of several with commas.
Value PathKey(Rendering& rendering, const Value& item, const Value& paths,
              bool case_sensitive) {
  const Text* const text = paths.IfText();
  if (text == nullptr || text->bytes().find(',') == std::string_view::npos) {
    return SortKey(rendering, GetPath(rendering, item, paths), case_sensitive);
  }
  std::vector<Value> keys;
  const std::string_view bytes = text->bytes();
  for (size_t begin = 0; begin <= bytes.size() && rendering.Step();) {
    const size_t end = std::min(bytes.find(',', begin), bytes.size());
    const Value path = MakeString(rendering, bytes.substr(begin, end - begin));
    keys.push_back(
        SortKey(rendering, GetPath(rendering, item, path), case_sensitive));
    begin = end + 1;
  }
  return MakeList(rendering, std::move(keys));
}

// Sorts `items` by key, stably. It has its own merge sort, since comparisons
// after a failed rendering are inconsistent, which std::stable_sort must not
// see.
std::vector<Value> SortBy(Rendering& rendering, const Items& items,
                          const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<size_t> merged(order.size());
  for (size_t width = 1; width < order.size() && rendering.ok(); width *= 2) {
    for (size_t begin = 0; begin < order.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, order.size());
      const size_t end = std::min(begin + 2 * width, order.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t i = begin; i < end; ++i) {
        const bool take_right =
            left == middle ||
            (right < end &&
             (reverse
                  ? Less(rendering, keys[order[left]], keys[order[right]])
                  : Less(rendering, keys[order[right]], keys[order[left]])));
        merged[i] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const size_t i : order) sorted.push_back(items[i]);
  return sorted;
}

Value SortFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "sort", args, {"reverse", "case_sensitive", "attribute"});
  const Items items(rendering, input);
  std::vector<Value> keys;
  for (const Value& item : items) {
    // Lists are ordered by their first parts that differ: equal ones need no
    // order, be they none.
    keys.push_back(MakeList(
        rendering, {PathKey(rendering, item, bound[2], Truth(bound[1]))}));
    if (!rendering.ok()) return Undefined{};
  }
  return MakeList(rendering, SortBy(rendering, items, keys, Truth(bound[0])));
}

Value DictSortFilter(Rendering& rendering, const Value& input,
                     const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "dictsort", args, {"case_sensitive", "by", "reverse"});
  const Text* by = bound[1].IfText();
  const size_t part = by != nullptr && by->bytes() == "value" ? 1 : 0;
  const Items items(rendering, ItemsFilter(rendering, input, {}));
  std::vector<Value> keys;
  for (const Value& item : items) {
    keys.push_back(
        SortKey(rendering, item.IfRef<List>()->items[part], Truth(bound[0])));
    if (!rendering.ok()) return Undefined{};
  }
  return MakeList(rendering, SortBy(rendering, items, keys, Truth(bound[2])));
}

Value UniqueFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "unique", args, {"case_sensitive", "attribute"});
  std::vector<Value> kept;
  std::vector<Value> keys;
  for (const Value& item : Items(rendering, input)) {
    const Value key = PathKey(rendering, item, bound[1], Truth(bound[0]));
    const bool seen = std::any_of(
        keys.begin(), keys.end(),
        [&](const Value& other) { return Equal(rendering, key, other); });
    if (!rendering.ok()) return Undefined{};
    if (seen) continue;
    keys.push_back(key);
    kept.push_back(item);
  }
  return MakeList(rendering, std::move(kept));
}

Value Extreme(Rendering& rendering, const Value& input, const Args& args,
              bool least) {
  const std::vector<Value> bound = Bind(rendering, least ? "min" : "max", args,
                                        {"case_sensitive", "attribute"});
  const Items items(rendering, input);
  if (items.size() == 0) return Undefined{};
  const auto key = [&](size_t i) {
    return PathKey(rendering, items[i], bound[1], Truth(bound[0]));
  };
  size_t best = 0;
  for (size_t i = 1; i < items.size() && rendering.ok(); ++i) {
    const Value a = key(i);
    const Value b = key(best);
    if (least ? Less(rendering, a, b) : Less(rendering, b, a)) best = i;
  }
  return items[best];
}

// The size that batch and slice are given.
size_t SizeOf(Rendering& rendering, std::string_view who, const Value& value) {
  constexpr int64_t kMost = 1'000'000;
  const int64_t size = value.IfInteger().value_or(0);
  if (size < 1 || size > kMost) {
    rendering.Fail(
        absl::StrCat(Abseil(who), ": needs a number from 1 to ", kMost));
    return 1;
  }
  return static_cast<size_t>(size);
}

Value BatchFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "batch", args, {"linecount", "fill_with"}, 1);
  const size_t size = SizeOf(rendering, "batch", bound[0]);
  const Items items(rendering, input);
  std::vector<Value> batches;
  for (size_t begin = 0; begin < items.size() && rendering.Step();
       begin += size) {
    const size_t end = std::min(begin + size, items.size());
    std::vector<Value> batch(items.begin() + begin, items.begin() + end);
    while (IsGiven(bound[1]) && batch.size() < size && rendering.Step()) {
      batch.push_back(bound[1]);
    }
    batches.push_back(MakeList(rendering, std::move(batch)));
  }
  return MakeList(rendering, std::move(batches));
}

Value SliceFilter(Rendering& rendering, const Value& input, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "slice", args, {"slices", "fill_with"}, 1);
  const size_t count = SizeOf(rendering, "slice", bound[0]);
  const Items items(rendering, input);
  const size_t each = items.size() / count;
  const size_t longer = items.size() % count;
  std::vector<Value> slices;
  size_t begin = 0;
  for (size_t i = 0; i < count && rendering.Step(); ++i) {
    const size_t end = begin + each + (i < longer ? 1 : 0);
    std::vector<Value> slice(items.begin() + begin, items.begin() + end);
    if (IsGiven(bound[1]) && i >= longer) slice.push_back(bound[1]);
    slices.push_back(MakeList(rendering, std::move(slice)));
    begin = end;
  }
  return MakeList(rendering, std::move(slices));
}

// Pairs of (grouper, list) by an attribute, in its order.
Value GroupByFilter(Rendering& rendering, const Value& input,
                    const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "groupby", args,
           {"attribute", "default", "case_sensitive"}, 1);
  const Items items(rendering, input);
  const auto value_of = [&](const Value& item) {
    const Value value = GetPath(rendering, item, bound[0]);
    return value.IsUndefined() ? bound[1] : value;
  };
  std::vector<Value> keys;
  for (const Value& item : items) {
    keys.push_back(SortKey(rendering, value_of(item), Truth(bound[2])));
    if (!rendering.ok()) return Undefined{};
  }
  std::vector<Value> groups;
  std::vector<Value> group;
  const std::vector<Value> sorted = SortBy(rendering, items, keys, false);
  for (size_t i = 0; i < sorted.size() && rendering.Step(); ++i) {
    group.push_back(sorted[i]);
    const auto key = [&](size_t at) {
      return SortKey(rendering, value_of(sorted[at]), Truth(bound[2]));
    };
    if (i + 1 < sorted.size() && Equal(rendering, key(i), key(i + 1))) continue;
    const Value grouper = value_of(group.front());
    groups.push_back(MakeList(rendering,
                              {grouper, MakeList(rendering, std::move(group))},
                              /*tuple=*/true, {"grouper", "list"}));
    group.clear();
  }
  return MakeList(rendering, std::move(groups));
}

// Jinja draws an item; so that one conversation has one prompt, it is always
// the first here.
Value RandomFilter(Rendering& rendering, const Value& input, const Args& args) {
  return FirstFilter(rendering, input, args);
}

Value MapFilter(Rendering& rendering, const Value& input, const Args& args) {
  if (!Truth(input))
    return MakeList(rendering, {});  // none has no items either
  std::vector<Value> mapped;
  if (args.positional.empty()) {
    const std::vector<Value> bound =
        Bind(rendering, "map", args, {"attribute", "default"});
    for (const Value& item : Items(rendering, input)) {
      const Value value = GetPath(rendering, item, bound[0]);
      mapped.push_back(value.IsUndefined() ? bound[1] : value);
      if (!rendering.ok()) return Undefined{};
    }
    return MakeList(rendering, std::move(mapped));
  }
  const Text name = Str(rendering, args.positional[0]);
  const Filter filter = FindFilter(name.bytes());
  if (filter == nullptr) {
    rendering.Fail(
        absl::StrCat("no filter is named '", Abseil(name.bytes()), "'"));
    return Undefined{};
  }
  const Args rest{{args.positional.begin() + 1, args.positional.end()},
                  args.named};
  for (const Value& item : Items(rendering, input)) {
    mapped.push_back(filter(rendering, item, rest));
    if (!rendering.ok()) return Undefined{};
  }
  return MakeList(rendering, std::move(mapped));
}

// select, reject and their attr forms: the items for which the test that the
// next argument names (truth, if there is none) gives `wanted`.
Value Choose(Rendering& rendering, const Value& input, const Args& args,
             bool by_attribute, bool wanted) {
  if (!Truth(input)) return MakeList(rendering, {});
  const size_t skip = by_attribute ? 1 : 0;
  if (args.positional.size() < skip) {
    rendering.Fail("selectattr: needs an attribute");
    return Undefined{};
  }
  Test test = nullptr;
  Args rest;
  if (args.positional.size() > skip) {
    const Text name = Str(rendering, args.positional[skip]);
    test = FindTest(name.bytes());
    if (test == nullptr) {
      rendering.Fail(
          absl::StrCat("no test is named '", Abseil(name.bytes()), "'"));
      return Undefined{};
    }
    rest.positional.assign(
        args.positional.begin() + static_cast<std::ptrdiff_t>(skip) + 1,
        args.positional.end());
  }
  std::vector<Value> chosen;
  for (const Value& item : Items(rendering, input)) {
    const Value value =
        by_attribute ? GetPath(rendering, item, args.positional[0]) : item;
    const bool holds =
        test == nullptr ? Truth(value) : test(rendering, value, rest);
    if (!rendering.Step()) return Undefined{};
    if (holds == wanted) chosen.push_back(item);
  }
  return MakeList(rendering, std::move(chosen));
}

constexpr BuiltinEntry<Filter> kListFilters[] = {
    {"batch", BatchFilter},
    {"count", LengthFilter},
    {"dictsort", DictSortFilter},
    {"first", FirstFilter},
    {"groupby", GroupByFilter},
    {"items", ItemsFilter},
    {"join", JoinFilter},
    {"last", LastFilter},
    {"length", LengthFilter},
    {"list", ListFilter},
    {"map", MapFilter},
    {"max",
     [](Rendering& rendering, const Value& v, const Args& args) {
       return Extreme(rendering, v, args, /*least=*/false);
     }},
    {"min",
     [](Rendering& rendering, const Value& v, const Args& args) {
       return Extreme(rendering, v, args, /*least=*/true);
     }},
    {"random", RandomFilter},
    {"reject",
     [](Rendering& rendering, const Value& v, const Args& args) {
       return Choose(rendering, v, args, /*by_attribute=*/false,
                     /*wanted=*/false);
     }},
    {"rejectattr",
     [](Rendering& rendering, const Value& v, const Args& args) {
       return Choose(rendering, v, args, /*by_attribute=*/true,
                     /*wanted=*/false);
     }},
    {"reverse", ReverseFilter},
    {"select",
     [](Rendering& rendering, const Value& v, const Args& args) {
       return Choose(rendering, v, args, /*by_attribute=*/false,
                     /*wanted=*/true);
     }},
    {"selectattr",
     [](Rendering& rendering, const Value& v, const Args& args) {
       return Choose(rendering, v, args, /*by_attribute=*/true,
                     /*wanted=*/true);
     }},
    {"slice", SliceFilter},
    {"sort", SortFilter},
    {"sum", SumFilter},
    {"unique", UniqueFilter},
};

}  // namespace

Filter FindListFilter(std::string_view name) {
  return FindIn(kListFilters, name);
}

}  // namespace tiercel::jinja
