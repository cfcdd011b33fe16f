#ifndef TIERCEL_APPS_TERMINAL_WORD_WRAP_H_
#define TIERCEL_APPS_TERMINAL_WORD_WRAP_H_

#include <string>
#include <string_view>

#include "apps/terminal/printable.h"

namespace tiercel::cli {

// Breaks running text between words where a line would be longer than a
// terminal is wide. The text comes in pieces, as a model writes it: a word is
// given out when it is known to be whole. Chinese and Japanese text breaks
// between characters, but not before one that closes. A word that is longer
// than a line has its own lines, which the terminal breaks.
class WordWrap {
 public:
  // Returns the text that can be written now. Lines are `columns` wide from
  // here on; with 0 they have any width, and all of `piece` comes back.
  std::string Push(std::string_view piece, int columns);
  // Returns the rest, at the end of the text.
  std::string Finish(int columns);

 private:
  // Adds the word that waits to `out`, with the blanks before it or a line end.
  void PutWord(int columns, std::string* out);
  // Ends the word with a blank or a line end.
  void EndWord(std::string_view blank, int columns, std::string* out);
  void AddToWord(std::string_view bytes, const TerminalCharacter& character,
                 int columns, std::string* out);

  int column_ = 0;      // column where the text given out ends
  std::string blanks_;  // blanks behind that text
  std::string word_;    // the word behind the blanks, not yet given out
  int word_columns_ = 0;
  bool ends_wide_ = false;  // the word's last character is a wide one
  bool is_long_ = false;    // inside a word that has lines of its own
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_WORD_WRAP_H_
