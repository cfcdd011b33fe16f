#ifndef TIERCEL_LIB_TEMPLATE_OPERATORS_H_
#define TIERCEL_LIB_TEMPLATE_OPERATORS_H_

#include "lib/template/ast.h"
#include "lib/template/value.h"

namespace tiercel::jinja {

// Python's operators. An operand of the wrong kind, an integer beyond 64 bits
// and a division by zero fail the rendering.
Value ApplyUnary(Rendering& rendering, Operator op, const Value& operand);
Value ApplyBinary(Rendering& rendering, Operator op, const Value& a,
                  const Value& b);
bool ApplyComparison(Rendering& rendering, Operator op, const Value& a,
                     const Value& b);

// value[start:stop:step]; a bound that is undefined or none is absent.
Value Slice(Rendering& rendering, const Value& value, const Value& start,
            const Value& stop, const Value& step);

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_OPERATORS_H_
