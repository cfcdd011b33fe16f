#ifndef TIERCEL_LIB_DOCUMENTS_TEXT_LINES_H_
#define TIERCEL_LIB_DOCUMENTS_TEXT_LINES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// A longer block is no heading.
inline constexpr int kMaxHeadingColumns = 120;
inline constexpr size_t kMaxHeadingLines = 3;
inline constexpr size_t kMaxListedLines = 5;  // if the contents list it

// A line of a plain text.
struct TextLine {
  size_t begin;           // start of its words, in bytes of the text
  std::string_view text;  // its words, without white space at either end
  bool is_first;          // a blank line, a new page or nothing is before it
  bool is_indented;       // blanks are before its words
  size_t num_lines;       // lines of its block from here on, up to a blank line
};

// Books have a tenth of this number of lines.
inline constexpr size_t kMaxTextLines = 2'000'000;

// Returns the lines of `text` that are not blank, up to kMaxTextLines. They
// point into it. In a double-spaced text one blank line separates nothing.
std::vector<TextLine> LinesOf(std::string_view text);

// Returns true if a text ends as a sentence or a part of one does.
bool EndsAsProse(std::string_view text);

// Returns a line whose letters stand apart ("C H A P T E R   I") in words; ""
// for other lines. Where no more than one blank is between them a word ends at
// its number.
std::string Closed(std::string_view line);

// Returns the block that begins with `line`, joined to one line.
std::string BlockAt(const std::vector<TextLine>& lines, size_t line);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_TEXT_LINES_H_
