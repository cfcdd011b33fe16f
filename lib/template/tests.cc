// The tests of `value is test`.

#include <memory>
#include <string>

#include "lib/template/builtins.h"

namespace tiercel::jinja {
namespace {

const Value& Operand(Rendering& rendering, const Args& args) {
  static const Value kNone = Undefined{};
  if (args.positional.size() == 1) return args.positional[0];
  rendering.Fail("this test needs one argument");
  return kNone;
}

int64_t IntegerOf(Rendering& rendering, const Value& value) {
  const std::optional<int64_t> integer = value.IfInteger();
  if (!integer.has_value()) FailKind(rendering, "a test", value, "an integer");
  return integer.value_or(0);
}

bool IsIterable(Rendering&, const Value& value, const Args&) {
  return value.IfText() != nullptr || value.IfRef<List>() != nullptr ||
         value.IfRef<Dict>() != nullptr || value.IsUndefined();
}

bool IsEqual(Rendering& rendering, const Value& value, const Args& args) {
  return Equal(rendering, value, Operand(rendering, args));
}
bool IsUnequal(Rendering& rendering, const Value& value, const Args& args) {
  return !Equal(rendering, value, Operand(rendering, args));
}
bool IsBelow(Rendering& rendering, const Value& value, const Args& args) {
  return Less(rendering, value, Operand(rendering, args));
}
bool IsAbove(Rendering& rendering, const Value& value, const Args& args) {
  return Less(rendering, Operand(rendering, args), value);
}
bool IsAtMost(Rendering& rendering, const Value& value, const Args& args) {
  return IsEqual(rendering, value, args) || IsBelow(rendering, value, args);
}
bool IsAtLeast(Rendering& rendering, const Value& value, const Args& args) {
  return IsEqual(rendering, value, args) || IsAbove(rendering, value, args);
}

// Python's `is`: of numbers and strings equal ones of one kind are the same.
bool IsSame(Rendering& rendering, const Value& value, const Args& args) {
  const Value& other = Operand(rendering, args);
  if (value.index() != other.index()) return false;
  if (const auto* list = value.If<std::shared_ptr<const List>>()) {
    return *list == *other.If<std::shared_ptr<const List>>();
  }
  if (const auto* dict = value.If<std::shared_ptr<const Dict>>()) {
    return *dict == *other.If<std::shared_ptr<const Dict>>();
  }
  return Equal(rendering, value, other);
}

bool IsDivisible(Rendering& rendering, const Value& value, const Args& args) {
  const int64_t divisor = IntegerOf(rendering, Operand(rendering, args));
  if (divisor == 0) rendering.Fail("division by zero");
  return rendering.ok() &&
         (divisor == -1 || IntegerOf(rendering, value) % divisor == 0);
}

// Calls a method of strings that tells if a string is of some kind.
bool TextIs(Rendering& rendering, const Value& value,
            const std::string& method) {
  if (value.IfText() == nullptr) return false;
  const Value bound = GetStringMethod(rendering, value, method);
  return rendering.ok() && Truth(bound.IfRef<Function>()->call({}));
}

constexpr BuiltinEntry<Test> kTests[] = {
    {"!=", IsUnequal},
    {"<", IsBelow},
    {"<=", IsAtMost},
    {"==", IsEqual},
    {">", IsAbove},
    {">=", IsAtLeast},
    {"boolean",
     [](Rendering&, const Value& v, const Args&) { return v.Is<bool>(); }},
    {"callable", [](Rendering&, const Value& v,
                    const Args&) { return v.IfRef<Function>() != nullptr; }},
    {"defined",
     [](Rendering&, const Value& v, const Args&) { return !v.IsUndefined(); }},
    {"divisibleby", IsDivisible},
    {"eq", IsEqual},
    {"equalto", IsEqual},
    {"even", [](Rendering& rendering, const Value& v,
                const Args&) { return IntegerOf(rendering, v) % 2 == 0; }},
    {"false", [](Rendering&, const Value& v,
                 const Args&) { return v.Is<bool>() && !Truth(v); }},
    {"escaped", [](Rendering&, const Value&, const Args&) { return false; }},
    {"filter",
     [](Rendering&, const Value& v, const Args&) {
       return v.IfText() != nullptr &&
              FindFilter(v.IfText()->bytes()) != nullptr;
     }},
    {"float",
     [](Rendering&, const Value& v, const Args&) { return v.Is<double>(); }},
    {"ge", IsAtLeast},
    {"greaterthan", IsAbove},
    {"gt", IsAbove},
    {"in",
     [](Rendering& rendering, const Value& v, const Args& args) {
       return Contains(rendering, Operand(rendering, args), v);
     }},
    {"integer",
     [](Rendering&, const Value& v, const Args&) { return v.Is<int64_t>(); }},
    {"iterable", IsIterable},
    {"le", IsAtMost},
    {"lessthan", IsBelow},
    {"lower", [](Rendering& rendering, const Value& v,
                 const Args&) { return TextIs(rendering, v, "islower"); }},
    {"lt", IsBelow},
    {"mapping", [](Rendering&, const Value& v,
                   const Args&) { return v.IfRef<Dict>() != nullptr; }},
    {"ne", IsUnequal},
    {"none",
     [](Rendering&, const Value& v, const Args&) { return v.Is<None>(); }},
    {"number", [](Rendering&, const Value& v,
                  const Args&) { return v.IfNumber().has_value(); }},
    {"odd", [](Rendering& rendering, const Value& v,
               const Args&) { return IntegerOf(rendering, v) % 2 != 0; }},
    {"sameas", IsSame},
    {"sequence", IsIterable},
    {"string", [](Rendering&, const Value& v,
                  const Args&) { return v.IfText() != nullptr; }},
    {"test",
     [](Rendering&, const Value& v, const Args&) {
       return v.IfText() != nullptr && FindTest(v.IfText()->bytes()) != nullptr;
     }},
    {"true", [](Rendering&, const Value& v,
                const Args&) { return v.Is<bool>() && Truth(v); }},
    {"undefined",
     [](Rendering&, const Value& v, const Args&) { return v.IsUndefined(); }},
    {"upper", [](Rendering& rendering, const Value& v,
                 const Args&) { return TextIs(rendering, v, "isupper"); }},
};

}  // namespace

Test FindTest(std::string_view name) { return FindIn(kTests, name); }

}  // namespace tiercel::jinja
