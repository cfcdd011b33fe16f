#ifndef TIERCEL_LIB_TEMPLATE_PRINTF_H_
#define TIERCEL_LIB_TEMPLATE_PRINTF_H_

#include <string_view>

#include "lib/template/value.h"

namespace tiercel::jinja {

// Python's ways to write values into a pattern. Each fails the rendering where
// Python raises; a string keeps its origin.

// pattern % values: a tuple of values, a dict for %(name)s, or a single value.
Value FormatPercent(Rendering& rendering, const Text& pattern,
                    const Value& values);

// str.format: {}, {0}, {name}, {name.attribute}, {name[key]}, each with !r, !s
// or !a and a format specification.
Value FormatBraces(Rendering& rendering, const Text& pattern, const Args& args);

// Appends `text` to `width` characters, filled with `fill` (one character) on
// the left ('>'), on the right ('<') or on both sides ('^').
void AppendPadded(Rendering& rendering, const Text& text, const Text& fill,
                  char align, int64_t width, TextBuilder* out);

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_PRINTF_H_
