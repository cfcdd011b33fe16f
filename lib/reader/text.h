#ifndef TIERCEL_LIB_READER_TEXT_H_
#define TIERCEL_LIB_READER_TEXT_H_

#include <string>
#include <string_view>

namespace tiercel::reader {

// Characters that separate words.
inline constexpr std::string_view kBlanks = " \t\r\n\f\v";

// Returns `text` without blanks at its ends.
std::string_view Trimmed(std::string_view text);

// Returns true if `text` has nothing but spaces of any kind and characters that
// do not show.
bool IsBlank(std::string_view text);

// Takes the first line off `text`, which is not empty, together with its end: a
// line feed, a carriage return, or both. `*text` is empty after the last.
std::string_view TakeLine(std::string_view* text);

// Replaces each run of blanks by one space and removes those at the ends.
std::string OneLine(std::string_view text);

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_TEXT_H_
