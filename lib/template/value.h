#ifndef TIERCEL_LIB_TEMPLATE_VALUE_H_
#define TIERCEL_LIB_TEMPLATE_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lib/template/rendering.h"
#include "lib/template/text.h"

namespace tiercel::jinja {

struct String;
struct List;
struct Dict;
struct Scope;
struct Function;
struct Loop;

struct Undefined {
  const std::string* name = nullptr;  // for errors; outlives the rendering
};
struct None {};

// A value of the template language. Everything it points to is immutable,
// except for namespaces and the loop object. Containers are at most
// kMaxValueDepth deep, so walking and destroying one never exhausts the stack.
// Namespaces count as leaves; Rendering breaks the cycles that they can form.
struct Value
    : std::variant<Undefined, None, bool, int64_t, double,
                   std::shared_ptr<const String>, std::shared_ptr<const List>,
                   std::shared_ptr<const Dict>, std::shared_ptr<Scope>,
                   std::shared_ptr<const Function>, std::shared_ptr<Loop>> {
  using variant::variant;

  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(*this);
  }
  template <typename T>
  const T* If() const {
    return std::get_if<T>(this);
  }
  // Returns the object that a reference kind points to, or null.
  template <typename T>
  const T* IfRef() const {
    const auto* pointer = std::get_if<std::shared_ptr<const T>>(this);
    return pointer == nullptr ? nullptr : pointer->get();
  }
  const Text* IfText() const;
  Scope* IfNamespace() const;
  Loop* IfLoop() const;
  bool IsUndefined() const { return Is<Undefined>(); }
  // Returns an int, or a bool as Python counts it.
  std::optional<int64_t> IfInteger() const;
  std::optional<double> IfNumber() const;  // an int, a bool or a float
};

inline constexpr int kMaxValueDepth = 100;

struct String {
  Text text;
  Charge charge;
};

struct List {
  std::vector<Value> items;
  bool tuple;
  int depth;
  Charge charge;
  std::vector<std::string_view> names = {};  // the items' own, if any
};

struct Dict {
  using Item = std::pair<Value, Value>;
  std::vector<Item> items;  // in the order they were written
  int depth;
  Charge charge;
};

// Names and their values: a scope of the template, which sees its parent's
// names, or a namespace object, which has no parent.
struct Scope {
  struct Entry {
    std::string name;
    Value value;
  };
  std::vector<Entry> names;
  std::shared_ptr<Scope> parent;
  bool kept = false;  // on the interpreter's list of scopes to clear
  Charge charge;

  const Value* FindOwn(std::string_view name) const;
  void Set(std::string_view name, Value value);
};

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Function {
  std::string name;
  int depth;  // depth of the value that it is bound to
  std::function<Value(const Args&)> call;
};

// The `loop` variable of a running for loop.
struct Loop {
  std::shared_ptr<const List> items;
  size_t index = 0;   // index of the current item
  int64_t depth = 0;  // loops of the same statement around it
  // The values that loop.changed was given last, for all loops of one run.
  std::shared_ptr<Value> last = nullptr;
  // Runs the loop's body for other items, if it is recursive; else null.
  std::function<Value(const Value&)> call = nullptr;
};

int DepthOf(const Value& value);
bool Truth(const Value& value);
// Returns the kind's name in messages: "string", "list", ...
std::string_view KindOf(const Value& value);

// Python's ==. Steps are counted, since a value may share its parts.
bool Equal(Rendering& rendering, const Value& a, const Value& b);
// Python's <, for two numbers, strings or sequences; else the rendering fails.
bool Less(Rendering& rendering, const Value& a, const Value& b);
// Python's `needle in haystack`.
bool Contains(Rendering& rendering, const Value& haystack, const Value& needle);
// Returns the value of `key` in a dict, or null.
const Value* Find(Rendering& rendering, const Dict& dict, const Value& key);
const Value* Find(Rendering& rendering, const Dict& dict, std::string_view key);

// Make values, which count against the rendering's memory.
Value MakeString(Rendering& rendering, Text text);
Value MakeString(Rendering& rendering,
                 std::string_view text);  // written by the template
Value MakeList(Rendering& rendering, std::vector<Value> items,
               bool tuple = false, std::vector<std::string_view> names = {});
Value MakeDict(Rendering& rendering, std::vector<Dict::Item> items);
Value MakeFunction(std::string name, const Value& self,
                   std::function<Value(const Args&)> call);

// Returns the items that iterating over the value yields, as one list. Returns
// null and fails the rendering if it cannot be iterated.
std::shared_ptr<const List> Iterate(Rendering& rendering, const Value& value);

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_VALUE_H_
