// The tests of `value is test`.

#include <memory>
#include <string>

#include "lib/template/builtins.h"
#include "lib/template/format.h"
#include "lib/template/operators.h"

namespace tiercel::jinja {
namespace {

const Value& Operand(Rendering& rendering, const Args& args) {
  static const Value kNone = Undefined{};
  if (args.positional.size() == 1) return args.positional[0];
  rendering.Fail("this test needs one argument");
  return kNone;
}

// Returns whether dividing a value by `divisor` leaves `rest`.
bool Leaves(Rendering& rendering, const Value& value, const Value& divisor,
            int64_t rest) {
  const Value left = ApplyBinary(rendering, Operator::kModulo, value, divisor);
  return rendering.ok() && Equal(rendering, left, rest);
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
  return Leaves(rendering, value, Operand(rendering, args), 0);
}

// Calls a method of strings that tells if the text of a value is of some kind.
bool TextIs(Rendering& rendering, const Value& value,
            const std::string& method) {
  const Value text = MakeString(rendering, Str(rendering, value));
  if (!rendering.ok()) return false;
  const Value bound = GetStringMethod(rendering, text, method);
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
    {"callable",
     [](Rendering&, const Value& v, const Args&) {
       // A call of an undefined value is what fails, as in Jinja.
       return v.IfRef<Function>() != nullptr || v.IsUndefined();
     }},
    {"defined",
     [](Rendering&, const Value& v, const Args&) { return !v.IsUndefined(); }},
    {"divisibleby", IsDivisible},
    {"eq", IsEqual},
    {"equalto", IsEqual},
    {"even", [](Rendering& rendering, const Value& v,
                const Args&) { return Leaves(rendering, v, int64_t{2}, 0); }},
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
               const Args&) { return Leaves(rendering, v, int64_t{2}, 1); }},
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
