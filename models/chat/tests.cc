// The tests of `value is test`.

#include "models/chat/builtins.h"

namespace tiercel::jinja {
namespace {

const Value& Operand(Run& run, const Args& args) {
  static const Value kNone = Undefined{};
  if (args.positional.size() == 1) return args.positional[0];
  run.Fail("this test needs one argument");
  return kNone;
}

int64_t IntegerOf(Run& run, const Value& value) {
  const std::optional<int64_t> integer = value.IfInteger();
  if (!integer.has_value()) FailKind(run, "a test", value, "an integer");
  return integer.value_or(0);
}

bool IsIterable(Run&, const Value& value, const Args&) {
  return value.IfText() != nullptr || value.IfRef<List>() != nullptr ||
         value.IfRef<Dict>() != nullptr || value.IsUndefined();
}

bool IsEqual(Run& run, const Value& value, const Args& args) {
  return Equal(run, value, Operand(run, args));
}
bool IsUnequal(Run& run, const Value& value, const Args& args) {
  return !Equal(run, value, Operand(run, args));
}
bool IsBelow(Run& run, const Value& value, const Args& args) {
  return Less(run, value, Operand(run, args));
}
bool IsAbove(Run& run, const Value& value, const Args& args) {
  return Less(run, Operand(run, args), value);
}
bool IsAtMost(Run& run, const Value& value, const Args& args) {
  return IsEqual(run, value, args) || IsBelow(run, value, args);
}
bool IsAtLeast(Run& run, const Value& value, const Args& args) {
  return IsEqual(run, value, args) || IsAbove(run, value, args);
}

bool IsDivisible(Run& run, const Value& value, const Args& args) {
  const int64_t divisor = IntegerOf(run, Operand(run, args));
  if (divisor == 0) run.Fail("division by zero");
  return run.ok() && (divisor == -1 || IntegerOf(run, value) % divisor == 0);
}

// str.islower and str.isupper: some letter, and none of the other case.
bool IsCased(const Value& value, char (*map)(char)) {
  const Text* text = value.IfText();
  if (text == nullptr) return false;
  bool has_letter = false;
  for (const char byte : text->bytes()) {
    if (map(byte) != byte) return false;
    has_letter = has_letter || Lower(byte) != Upper(byte);
  }
  return has_letter;
}

struct TestEntry {
  std::string_view name;
  Test test;
};

constexpr TestEntry kTests[] = {
    {"!=", IsUnequal},
    {"<", IsBelow},
    {"<=", IsAtMost},
    {"==", IsEqual},
    {">", IsAbove},
    {">=", IsAtLeast},
    {"boolean", [](Run&, const Value& v, const Args&) { return v.Is<bool>(); }},
    {"callable", [](Run&, const Value& v,
                    const Args&) { return v.IfRef<Function>() != nullptr; }},
    {"defined",
     [](Run&, const Value& v, const Args&) { return !v.IsUndefined(); }},
    {"divisibleby", IsDivisible},
    {"eq", IsEqual},
    {"equalto", IsEqual},
    {"even", [](Run& run, const Value& v,
                const Args&) { return IntegerOf(run, v) % 2 == 0; }},
    {"false", [](Run&, const Value& v,
                 const Args&) { return v.Is<bool>() && !Truth(v); }},
    {"float", [](Run&, const Value& v, const Args&) { return v.Is<double>(); }},
    {"ge", IsAtLeast},
    {"greaterthan", IsAbove},
    {"gt", IsAbove},
    {"in",
     [](Run& run, const Value& v, const Args& args) {
       return Contains(run, Operand(run, args), v);
     }},
    {"integer",
     [](Run&, const Value& v, const Args&) { return v.Is<int64_t>(); }},
    {"iterable", IsIterable},
    {"le", IsAtMost},
    {"lessthan", IsBelow},
    {"lower",
     [](Run&, const Value& v, const Args&) { return IsCased(v, Lower); }},
    {"lt", IsBelow},
    {"mapping", [](Run&, const Value& v,
                   const Args&) { return v.IfRef<Dict>() != nullptr; }},
    {"ne", IsUnequal},
    {"none", [](Run&, const Value& v, const Args&) { return v.Is<None>(); }},
    {"number", [](Run&, const Value& v,
                  const Args&) { return v.IfNumber().has_value(); }},
    {"odd", [](Run& run, const Value& v,
               const Args&) { return IntegerOf(run, v) % 2 != 0; }},
    {"sequence", IsIterable},
    {"string",
     [](Run&, const Value& v, const Args&) { return v.IfText() != nullptr; }},
    {"true", [](Run&, const Value& v,
                const Args&) { return v.Is<bool>() && Truth(v); }},
    {"undefined",
     [](Run&, const Value& v, const Args&) { return v.IsUndefined(); }},
    {"upper",
     [](Run&, const Value& v, const Args&) { return IsCased(v, Upper); }},
};

}  // namespace

Test FindTest(std::string_view name) {
  for (const TestEntry& entry : kTests) {
    if (entry.name == name) return entry.test;
  }
  return nullptr;
}

}  // namespace tiercel::jinja
