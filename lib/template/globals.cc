// The functions that every template can call.

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/template/builtins.h"
#include "lib/template/format.h"

namespace tiercel::jinja {
namespace {

constexpr int64_t kMaxRange = 1'000'000;

Value Range(Rendering& rendering, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "range", args, {"start", "stop", "step"}, 1);
  int64_t numbers[3] = {0, 0, 1};
  const size_t num_given = args.positional.size();
  for (size_t i = 0; i < num_given && i < 3; ++i) {
    const std::optional<int64_t> integer = bound[i].IfInteger();
    if (!integer.has_value())
      FailKind(rendering, "range", bound[i], "an integer");
    numbers[num_given == 1 ? 1 : i] = integer.value_or(0);
  }
  const auto [start, stop, step] = numbers;
  if (step == 0) rendering.Fail("range: the step is zero");
  if (!rendering.ok()) return Undefined{};
  std::vector<Value> items;
  Charge charge(rendering);
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) == kMaxRange) {
      rendering.Fail(absl::StrCat("range: more than ", kMaxRange, " items"));
    }
    if (items.size() % 1024 == 0) charge.Grow(1024 * sizeof(Value));
    if (!rendering.ok()) return Undefined{};
    items.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  charge = Charge();
  return MakeList(rendering, std::move(items));
}

// Puts a value under its key, in place of another's.
void PutItem(Rendering& rendering, const Value& key, const Value& value,
             std::vector<Dict::Item>* items) {
  for (auto& [other, old] : *items) {
    if (Equal(rendering, key, other)) {
      old = value;
      return;
    }
    if (!rendering.ok()) return;
  }
  items->emplace_back(key, value);
}

// Python's dict(): of a dict or of pairs, and of names.
Value MakeDictFromArgs(Rendering& rendering, const Args& args) {
  std::vector<Dict::Item> items;
  if (args.positional.size() > 1) {
    rendering.Fail("dict: takes one dict or list of pairs, and names");
    return Undefined{};
  }
  if (args.positional.size() == 1) {
    const Value& given = args.positional[0];
    if (const Dict* dict = given.IfRef<Dict>()) {
      items = dict->items;
    } else {
      const std::shared_ptr<const List> pairs = Iterate(rendering, given);
      for (size_t i = 0; pairs != nullptr && i < pairs->items.size(); ++i) {
        const std::shared_ptr<const List> pair =
            Iterate(rendering, pairs->items[i]);
        if (pair == nullptr) break;
        const bool is_pair = pair->items.size() == 2;
        const List* key = is_pair ? pair->items[0].IfRef<List>() : nullptr;
        if (!is_pair || pair->items[0].IfRef<Dict>() != nullptr ||
            (key != nullptr && !key->tuple)) {
          rendering.Fail(is_pair ? "dict: a list or a dict is no key"
                                 : "dict: needs pairs");
          break;
        }
        PutItem(rendering, pair->items[0], pair->items[1], &items);
      }
    }
  }
  for (const auto& [name, value] : args.named) {
    PutItem(rendering, MakeString(rendering, name), value, &items);
  }
  if (!rendering.ok()) return Undefined{};
  return MakeDict(rendering, std::move(items));
}

Value RaiseException(Rendering& rendering, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "raise_exception", args, {"message"});
  const Text message = Str(rendering, bound[0]);
  rendering.Fail(
      absl::StrCat("the template refuses: ", Abseil(message.bytes())));
  return Undefined{};
}

// Appends what Python's datetime writes for one conversion, "%d" or "%-d". The
// time has no zone there.
void AppendTime(const struct timespec& now, const struct tm& local,
                const std::string& conversion, TextBuilder* out) {
  static const locale_t kEnglish = newlocale(LC_ALL_MASK, "C", nullptr);
  const char letter = conversion.back();
  if (letter == 'z' || letter == 'Z') return;
  char text[64];
  size_t size = 0;
  if (letter == 'f') {
    size = static_cast<size_t>(
        std::snprintf(text, sizeof(text), "%06ld", now.tv_nsec / 1000));
  } else {
    size = strftime_l(text, sizeof(text), conversion.c_str(), &local, kEnglish);
  }
  out->Append(std::string_view(text, size));
}

// strftime in English, whatever the program's locale. It converts one known
// specifier at a time, since the format comes from the model file.
Value StrftimeNow(Rendering& rendering, const Args& args) {
  const std::vector<Value> bound =
      Bind(rendering, "strftime_now", args, {"format"}, 1);
  const Text* format = bound[0].IfText();
  if (format == nullptr) {
    FailKind(rendering, "strftime_now", bound[0], "a string");
    return Undefined{};
  }
  struct timespec now = {};
  struct tm local;
  clock_gettime(CLOCK_REALTIME, &now);
  if (localtime_r(&now.tv_sec, &local) == nullptr) {
    rendering.Fail("strftime_now: no local time");
    return Undefined{};
  }
  TextBuilder out(rendering);
  const std::string_view bytes = format->bytes();
  const auto is_one_of = [](std::string_view all, char c) {
    return all.find(c) != std::string_view::npos;
  };
  for (size_t i = 0; i < bytes.size() && rendering.ok();) {
    if (bytes[i] != '%') {
      const size_t end = std::min(bytes.find('%', i), bytes.size());
      out.Append(*format, i, end);
      i = end;
      continue;
    }
    const bool has_flag =
        i + 1 < bytes.size() && is_one_of("-_0^#", bytes[i + 1]);
    const size_t end = i + 2 + (has_flag ? 1 : 0);
    if (end > bytes.size() ||
        !is_one_of("aAbBcCdDeFfgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%",
                   bytes[end - 1])) {
      rendering.Fail("strftime_now: unknown conversion");
      break;
    }
    AppendTime(now, local, std::string(bytes.substr(i, end - i)), &out);
    i = end;
  }
  return MakeString(rendering, out.TakeText());
}

// A function that gives "" the first time, and then a separator.
Value Joiner(Rendering& rendering, const Args& args) {
  const std::vector<Value> bound = Bind(rendering, "joiner", args, {"sep"});
  const Value separator =
      bound[0].IsUndefined() ? MakeString(rendering, ", ") : bound[0];
  return MakeFunction("joiner", separator,
                      [&rendering, separator,
                       used = std::make_shared<bool>(false)](const Args&) {
                        return std::exchange(*used, true)
                                   ? separator
                                   : MakeString(rendering, "");
                      });
}

}  // namespace

Value MakeCycler(Rendering& rendering, const Args& args,
                 const std::shared_ptr<Scope>& object) {
  if (args.positional.empty() || !args.named.empty()) {
    rendering.Fail("cycler: takes one item or more, without names");
    return Undefined{};
  }
  struct State {
    std::vector<Value> items;
    size_t at = 0;
    std::weak_ptr<Scope> shown;  // the object

    void Show() {
      if (const auto scope = shown.lock()) scope->Set("current", items[at]);
    }
  };
  auto state = std::make_shared<State>();
  state->items = args.positional;
  state->shown = object;
  state->Show();
  object->Set("next", MakeFunction("next", None{}, [state](const Args&) {
                const Value item = state->items[state->at];
                state->at = (state->at + 1) % state->items.size();
                state->Show();
                return item;
              }));
  object->Set("reset",
              MakeFunction("reset", None{}, [state](const Args&) -> Value {
                state->at = 0;
                state->Show();
                return None{};
              }));
  return object;
}

void AddGlobals(Rendering& rendering, Scope* globals) {
  struct Global {
    const char* name;
    Value (*call)(Rendering&, const Args&);
  };
  static constexpr Global kGlobals[] = {{"range", Range},
                                        {"dict", MakeDictFromArgs},
                                        {"joiner", Joiner},
                                        {"raise_exception", RaiseException},
                                        {"strftime_now", StrftimeNow}};
  for (const Global& global : kGlobals) {
    globals->Set(
        global.name,
        MakeFunction(global.name, None{},
                     [&rendering, call = global.call](const Args& args) {
                       return call(rendering, args);
                     }));
  }
}

}  // namespace tiercel::jinja
