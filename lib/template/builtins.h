#ifndef TIERCEL_LIB_TEMPLATE_BUILTINS_H_
#define TIERCEL_LIB_TEMPLATE_BUILTINS_H_

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "lib/template/value.h"

namespace tiercel::jinja {

// The filters, tests, methods and functions of the language. Each fails the
// rendering on arguments that it does not take.

// A function of the language, in a table of those of its kind.
template <typename F>
struct BuiltinEntry {
  std::string_view name;
  F function;
};
// Returns the function of that name; null: the table has none.
template <typename F, size_t kCount>
F FindIn(const BuiltinEntry<F> (&table)[kCount], std::string_view name) {
  for (const BuiltinEntry<F>& entry : table) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

using Filter = Value (*)(Rendering& rendering, const Value& input,
                         const Args& args);
Filter FindFilter(std::string_view name);      // null where there is none
Filter FindListFilter(std::string_view name);  // the filters of list_filters.cc
Filter FindTextFilter(std::string_view name);  // the filters of text_filters.cc

using Test = bool (*)(Rendering& rendering, const Value& value,
                      const Args& args);
Test FindTest(std::string_view name);  // null where there is none

// Returns value.name, methods included; undefined if there is none. `name` must
// outlive the rendering.
Value GetAttribute(Rendering& rendering, const Value& value,
                   const std::string& name);
// Returns value[key], which may be an attribute too.
Value GetItem(Rendering& rendering, const Value& value, const Value& key);

// Returns the method self.name of a string, bound to it; undefined if there is
// none.
Value GetStringMethod(Rendering& rendering, const Value& self,
                      const std::string& name);

// Fills an empty `object`, which gives the next of some items each time, from
// the first again after the last.
Value MakeCycler(Rendering& rendering, const Args& args,
                 const std::shared_ptr<Scope>& object);

// Adds the functions range, dict, joiner, raise_exception and strftime_now.
void AddGlobals(Rendering& rendering, Scope* globals);

// Fails the rendering with a message that `who` got `got` and needs `needed`.
void FailKind(Rendering& rendering, std::string_view who, const Value& got,
              std::string_view needed);

// Returns the arguments in the order of `names`; undefined for those not given.
std::vector<Value> Bind(Rendering& rendering, std::string_view who,
                        const Args& args,
                        std::initializer_list<std::string_view> names,
                        size_t required = 0);

// str.strip, str.lstrip and str.rstrip. `set` holds the characters to drop;
// null means white space.
enum class Side { kLeft, kRight, kBoth };
Text Strip(const Text& text, const Text* set, Side side);
// str.replace; count < 0 means all.
Value Replace(Rendering& rendering, const Text& text, const Text& from,
              const Text& to, int64_t count);
// str.splitlines: returns the lines as strings, with their ends if it `keeps`
// them.
std::vector<Value> SplitLines(Rendering& rendering, const Text& text,
                              bool keeps = false);
Value Join(Rendering& rendering, const Value& items, const Text& separator);

// str.split(): returns the words between white space.
std::vector<Value> SplitWords(Rendering& rendering, const Text& text);
// str.center.
Value Centered(Rendering& rendering, const Text& text, int64_t width,
               const Text& fill);
// The text with entities for the characters that HTML gives a meaning.
Text Escaped(Rendering& rendering, const Text& text);

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_BUILTINS_H_
