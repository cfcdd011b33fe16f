#ifndef TIERCEL_APPS_TERMINAL_PRINTABLE_H_
#define TIERCEL_APPS_TERMINAL_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace tiercel::cli {

// A character of UTF-8 as a terminal takes it.
struct TerminalCharacter {
  size_t bytes = 0;
  int columns = 0;      // 0 to 2; 0 also where it is not safe
  bool is_safe = true;  // false: it drives the terminal
  bool is_wide = false;
};

// The character of `text` at `at`, which is in it. Not safe are control
// characters but for line ends and tabs (of these C1 too, with which some
// terminals begin a sequence as with ESC), characters that turn the direction
// of what follows (embeddings, overrides and isolates), and bytes that are no
// UTF-8.
TerminalCharacter CharacterAt(std::string_view text, size_t at);

// `text` with a '?' for each character that is not safe, and "\n" for "\r\n":
// whoever wrote it (a model, a book, a file's name) says no more than its
// letters.
std::string Printable(std::string_view text);

// How many columns of a terminal Printable(text) takes.
size_t ColumnsOf(std::string_view text);

// A JSON document with \u escapes for such characters: the same document.
std::string PrintableJson(std::string_view document);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_PRINTABLE_H_
