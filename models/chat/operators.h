#ifndef TIERCEL_MODELS_CHAT_OPERATORS_H_
#define TIERCEL_MODELS_CHAT_OPERATORS_H_

#include "models/chat/ast.h"
#include "models/chat/value.h"

namespace tiercel::jinja {

// Python's operators. An operand of the wrong kind, an integer beyond 64 bits
// and a division by zero fail the run.
Value ApplyUnary(Run& run, Operator op, const Value& operand);
Value ApplyBinary(Run& run, Operator op, const Value& a, const Value& b);
bool ApplyComparison(Run& run, Operator op, const Value& a, const Value& b);

// value[start:stop:step]; an undefined or none bound is an absent one.
Value Slice(Run& run, const Value& value, const Value& start, const Value& stop,
            const Value& step);

}  // namespace tiercel::jinja

#endif  // TIERCEL_MODELS_CHAT_OPERATORS_H_
