#ifndef TIERCEL_LIB_TEXT_NESTING_H_
#define TIERCEL_LIB_TEXT_NESTING_H_

#include <string_view>

namespace tiercel {

// The signs by which an unparsed text shows how deep it is nested. In quotes a
// backslash takes the meaning of the character behind it.
struct NestingSigns {
  std::string_view open;
  std::string_view close;
  std::string_view quotes;  // each ends what it begins; '[' ends at ']'
  char comment = 0;         // begins the rest of a line; 0: there are none
};
inline constexpr NestingSigns kJsonNesting = {"{[", "}]", "\""};

// The deepest nesting of brackets outside of quotes and comments; a text of a
// wrong form gives some number.
int NestingOf(std::string_view text, const NestingSigns& signs);

}  // namespace tiercel

#endif  // TIERCEL_LIB_TEXT_NESTING_H_
