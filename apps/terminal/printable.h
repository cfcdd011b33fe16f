#ifndef TIERCEL_APPS_TERMINAL_PRINTABLE_H_
#define TIERCEL_APPS_TERMINAL_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace tiercel::cli {

// The size of a UTF-8 character, and a terminal's treatment of it.
struct TerminalCharacter {
  size_t bytes = 0;
  int columns = 0;      // 0 to 2; 0 also if it is not safe
  bool is_safe = true;  // false: it would control the terminal
  bool is_wide = false;
};

// The character of `text` at `at`, which is less than its size. These are not
// safe: control characters other than line ends and tabs (also those of C1,
// which some terminals take for ESC), characters that turn the direction of the
// text behind them (embeddings, overrides and isolates), and invalid UTF-8.
TerminalCharacter CharacterAt(std::string_view text, size_t at);

// Returns `text` with a '?' for each character that is not safe, and "\n" for
// "\r\n", so that a text (of a model, a book, a file's name) cannot control the
// terminal.
std::string Printable(std::string_view text);

// The number of columns of a terminal that Printable(text) takes.
size_t ColumnsOf(std::string_view text);

// Returns the same JSON document with \u escapes for unsafe characters.
std::string PrintableJson(std::string_view document);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_PRINTABLE_H_
