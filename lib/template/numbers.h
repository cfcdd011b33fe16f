#ifndef TIERCEL_LIB_TEMPLATE_NUMBERS_H_
#define TIERCEL_LIB_TEMPLATE_NUMBERS_H_

#include <cstdint>
#include <optional>

#include "lib/template/value.h"

namespace tiercel::jinja {

// Numbers in text, as Python's int() and float() read them: white space around
// them, a sign, underscores between digits, decimal digits of any script.

// Returns nothing if the text is no integer. `base` is 2 to 36, or 0 for one
// that the text says (0x, 0o, 0b). The rendering fails beyond 64 bits.
std::optional<int64_t> ReadInteger(Rendering& rendering, const Text& text,
                                   int64_t base);
// Returns nothing if the text is no number.
std::optional<double> ReadReal(const Text& text);

// Returns the integer towards zero. The rendering fails beyond 64 bits.
int64_t Truncated(Rendering& rendering, double value);

}  // namespace tiercel::jinja

#endif  // TIERCEL_LIB_TEMPLATE_NUMBERS_H_
