#ifndef TIERCEL_APPS_READER_TEXT_H_
#define TIERCEL_APPS_READER_TEXT_H_

#include <string>
#include <string_view>

namespace tiercel::reader {

// What parts words.
inline constexpr std::string_view kBlanks = " \t\r\n\f\v";

// Without blanks at its ends.
std::string_view Trimmed(std::string_view text);

// Takes the first line of `text`, which is not empty, off it, with its end: a
// line feed, a carriage return, or both. `*text` is empty behind the last.
std::string_view TakeLine(std::string_view* text);

// Runs of blanks as one space, none at the ends.
std::string OneLine(std::string_view text);

}  // namespace tiercel::reader

#endif  // TIERCEL_APPS_READER_TEXT_H_
