#include "lib/template/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "lib/template/format.h"
#include "lib/template/printf.h"

namespace tiercel::jinja {
namespace {

std::string_view Spelling(Operator op) {
  switch (op) {
    case Operator::kAdd:
    case Operator::kPositive:
      return "+";
    case Operator::kSubtract:
    case Operator::kNegative:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    case Operator::kPower:
      return "**";
    default:
      return "operator";
  }
}

std::string Describe(const Value& value) {
  const Undefined* undefined = value.If<Undefined>();
  if (undefined != nullptr && undefined->name != nullptr) {
    return absl::StrCat("undefined '", *undefined->name, "'");
  }
  return std::string(KindOf(value));
}

Value FailOperands(Rendering& rendering, Operator op, const Value& a,
                   const Value& b) {
  rendering.Fail(absl::StrCat("'", Abseil(Spelling(op)),
                              "' cannot be applied to ", Describe(a), " and ",
                              Describe(b)));
  return Undefined{};
}

Value FailRange(Rendering& rendering) {
  rendering.Fail("an integer is out of range");
  return Undefined{};
}

Value FailDivision(Rendering& rendering) {
  rendering.Fail("division by zero");
  return Undefined{};
}

Value IntegerPower(Rendering& rendering, int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return FailDivision(rendering);
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  if (base == 0 || base == 1) return exponent == 0 ? int64_t{1} : base;
  if (base == -1) return exponent % 2 == 0 ? int64_t{1} : int64_t{-1};
  int64_t power = 1;
  for (int64_t i = 0; i < exponent; ++i) {  // overflows within 63 rounds
    if (__builtin_mul_overflow(power, base, &power))
      return FailRange(rendering);
  }
  return power;
}

Value ApplyIntegers(Rendering& rendering, Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Operator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kDivide:
      if (b == 0) return FailDivision(rendering);
      return static_cast<double>(a) / static_cast<double>(b);
    case Operator::kFloorDivide:
    case Operator::kModulo: {
      if (b == 0) return FailDivision(rendering);
      if (b == -1) {  // the one quotient that overflows
        overflow = __builtin_sub_overflow(0, a, &result);
        if (op == Operator::kModulo) return int64_t{0};
        break;
      }
      const int64_t rest = a % b;
      const bool below = rest != 0 && (rest < 0) != (b < 0);
      result = op == Operator::kModulo ? (below ? rest + b : rest)
                                       : (below ? a / b - 1 : a / b);
      break;
    }
    default:
      return IntegerPower(rendering, a, b);
  }
  if (overflow) return FailRange(rendering);
  return result;
}

Value ApplyReals(Rendering& rendering, Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSubtract:
      return a - b;
    case Operator::kMultiply:
      return a * b;
    case Operator::kDivide:
      if (b == 0) return FailDivision(rendering);
      return a / b;
    case Operator::kFloorDivide:
      if (b == 0) return FailDivision(rendering);
      return std::floor(a / b);
    case Operator::kModulo: {
      if (b == 0) return FailDivision(rendering);
      const double rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    default:
      return std::pow(a, b);
  }
}

Value Concatenate(Rendering& rendering, const Text& a, const Text& b) {
  TextBuilder joined(rendering);
  joined.Append(a);
  joined.Append(b);
  return MakeString(rendering, joined.TakeText());
}

Value JoinLists(Rendering& rendering, const List& a, const List& b) {
  Charge charge(rendering);
  if (!charge.Grow((a.items.size() + b.items.size()) * sizeof(Value))) {
    return Undefined{};
  }
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return MakeList(rendering, std::move(items), a.tuple);
}

Value Repeat(Rendering& rendering, const Value& value, int64_t times) {
  if (const Text* text = value.IfText()) {
    TextBuilder repeated(rendering);
    for (int64_t i = 0; i < times && !text->empty() && rendering.Step(); ++i) {
      repeated.Append(*text);
    }
    return MakeString(rendering, repeated.TakeText());
  }
  const List& list = *value.IfRef<List>();
  Charge charge(rendering);
  std::vector<Value> items;
  for (int64_t i = 0; i < times && !list.items.empty() && rendering.Step();
       ++i) {
    if (!charge.Grow(list.items.size() * sizeof(Value))) break;
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return MakeList(rendering, std::move(items), list.tuple);
}

bool IsSequence(const Value& value) {
  return value.IfText() != nullptr || value.IfRef<List>() != nullptr;
}

// The indices that [start:stop:step] selects from `size` items.
struct Picks {
  int64_t first;
  int64_t count;
  int64_t step;
};

Picks Resolve(int64_t size, std::optional<int64_t> start,
              std::optional<int64_t> stop, int64_t step) {
  const int64_t least = step > 0 ? 0 : -1;
  const int64_t most = step > 0 ? size : size - 1;
  const auto clamp = [&](int64_t bound) {
    if (bound < 0) bound += size;  // size >= 0: no overflow
    return std::clamp(bound, least, std::max(least, most));
  };
  const int64_t first =
      start.has_value() ? clamp(*start) : (step > 0 ? least : most);
  const int64_t end =
      stop.has_value() ? clamp(*stop) : (step > 0 ? most : least);
  const int64_t distance = step > 0 ? end - first : first - end;
  if (distance <= 0) return {first, 0, step};
  // A step beyond the size selects one item; capping it keeps the sum in range.
  const int64_t stride = std::min(step > 0 ? step : -std::max(step, -size),
                                  std::max<int64_t>(size, 1));
  return {first, (distance - 1) / stride + 1, step > 0 ? stride : -stride};
}

Value SliceText(Rendering& rendering, const Text& text,
                std::optional<int64_t> start, std::optional<int64_t> stop,
                int64_t step) {
  const std::string_view bytes = text.bytes();
  Charge charge(rendering);
  std::vector<size_t> begins;  // offset of each character, and of the end
  if (!rendering.StepBytes(bytes.size()) ||
      !charge.Grow((CountCharacters(bytes) + 1) * sizeof(size_t))) {
    return Undefined{};
  }
  for (size_t i = 0; i < bytes.size(); i = CharacterEnd(bytes, i)) {
    begins.push_back(i);
  }
  const auto size = static_cast<int64_t>(begins.size());
  begins.push_back(bytes.size());
  const Picks picks = Resolve(size, start, stop, step);
  TextBuilder slice(rendering);
  if (picks.step == 1) {
    const auto first = static_cast<size_t>(picks.first);
    slice.Append(text, begins[first],
                 begins[first + static_cast<size_t>(picks.count)]);
  } else {
    for (int64_t i = 0; i < picks.count && rendering.ok(); ++i) {
      const auto at = static_cast<size_t>(picks.first + i * picks.step);
      slice.Append(text, begins[at], begins[at + 1]);
    }
  }
  return MakeString(rendering, slice.TakeText());
}

}  // namespace

Value ApplyUnary(Rendering& rendering, Operator op, const Value& operand) {
  if (op == Operator::kNot) return !Truth(operand);
  if (const std::optional<int64_t> integer = operand.IfInteger()) {
    return op == Operator::kPositive
               ? Value(*integer)
               : ApplyIntegers(rendering, Operator::kSubtract, 0, *integer);
  }
  if (const double* real = operand.If<double>()) {
    return op == Operator::kPositive ? *real : -*real;
  }
  rendering.Fail(absl::StrCat("'", Abseil(Spelling(op)),
                              "' cannot be applied to ", Describe(operand)));
  return Undefined{};
}

Value ApplyBinary(Rendering& rendering, Operator op, const Value& a,
                  const Value& b) {
  if (op == Operator::kConcat) {
    return Concatenate(rendering, Str(rendering, a), Str(rendering, b));
  }
  const std::optional<int64_t> integer_a = a.IfInteger();
  const std::optional<int64_t> integer_b = b.IfInteger();
  if (integer_a.has_value() && integer_b.has_value()) {
    return ApplyIntegers(rendering, op, *integer_a, *integer_b);
  }
  const std::optional<double> number_a = a.IfNumber();
  const std::optional<double> number_b = b.IfNumber();
  if (number_a.has_value() && number_b.has_value()) {
    return ApplyReals(rendering, op, *number_a, *number_b);
  }
  if (const Text* text = a.IfText();
      text != nullptr && op == Operator::kModulo) {
    return FormatPercent(rendering, *text, b);
  }
  if (op == Operator::kAdd) {
    const Text* text_a = a.IfText();
    const Text* text_b = b.IfText();
    if (text_a != nullptr && text_b != nullptr) {
      return Concatenate(rendering, *text_a, *text_b);
    }
    const List* list_a = a.IfRef<List>();
    const List* list_b = b.IfRef<List>();
    if (list_a != nullptr && list_b != nullptr &&
        list_a->tuple == list_b->tuple) {
      return JoinLists(rendering, *list_a, *list_b);
    }
  }
  if (op == Operator::kMultiply && integer_b.has_value() && IsSequence(a)) {
    return Repeat(rendering, a, *integer_b);
  }
  if (op == Operator::kMultiply && integer_a.has_value() && IsSequence(b)) {
    return Repeat(rendering, b, *integer_a);
  }
  return FailOperands(rendering, op, a, b);
}

bool ApplyComparison(Rendering& rendering, Operator op, const Value& a,
                     const Value& b) {
  switch (op) {
    case Operator::kEqual:
      return Equal(rendering, a, b);
    case Operator::kNotEqual:
      return !Equal(rendering, a, b);
    case Operator::kLess:
      return Less(rendering, a, b);
    case Operator::kLessEqual:
      return Less(rendering, a, b) || Equal(rendering, a, b);
    case Operator::kGreater:
      return Less(rendering, b, a);
    case Operator::kGreaterEqual:
      return Less(rendering, b, a) || Equal(rendering, a, b);
    case Operator::kIn:
      return Contains(rendering, b, a);
    default:
      return !Contains(rendering, b, a);
  }
}

Value Slice(Rendering& rendering, const Value& value, const Value& start,
            const Value& stop, const Value& step) {
  std::optional<int64_t> numbers[3];
  const Value* const bounds[3] = {&start, &stop, &step};
  for (int i = 0; i < 3; ++i) {
    numbers[i] = bounds[i]->IfInteger();
    if (!numbers[i].has_value() && !bounds[i]->IsUndefined() &&
        !bounds[i]->Is<None>()) {
      rendering.Fail(
          absl::StrCat("a slice needs integers, got ", Describe(*bounds[i])));
      return Undefined{};
    }
  }
  const int64_t stride = numbers[2].value_or(1);
  if (stride == 0) {
    rendering.Fail("a slice's step is zero");
    return Undefined{};
  }
  if (const Text* text = value.IfText()) {
    return SliceText(rendering, *text, numbers[0], numbers[1], stride);
  }
  const List* list = value.IfRef<List>();
  if (list == nullptr) {
    rendering.Fail(absl::StrCat("cannot slice ", Describe(value)));
    return Undefined{};
  }
  const Picks picks = Resolve(static_cast<int64_t>(list->items.size()),
                              numbers[0], numbers[1], stride);
  Charge charge(rendering);
  if (!charge.Grow(static_cast<size_t>(picks.count) * sizeof(Value))) {
    return Undefined{};
  }
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(picks.count));
  for (int64_t i = 0; i < picks.count; ++i) {
    items.push_back(
        list->items[static_cast<size_t>(picks.first + i * picks.step)]);
  }
  return MakeList(rendering, std::move(items), list->tuple);
}

}  // namespace tiercel::jinja
