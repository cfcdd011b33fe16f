#ifndef TIERCEL_APPS_TERMINAL_WORD_WRAP_H_
#define TIERCEL_APPS_TERMINAL_WORD_WRAP_H_

#include <string>
#include <string_view>

#include "apps/terminal/printable.h"

namespace tiercel::cli {

// Breaks running text between words where a line would be longer than a
// terminal is wide. The text comes in pieces, as a model writes it: a word is
// given out when it is known to be whole. What is written in Chinese or
// Japanese breaks between characters, but not before one that closes. A word
// that is longer than a line has its own lines, which the terminal breaks.
class WordWrap {
 public:
  // What of the text can be written now. `columns`: how wide lines are from
  // here on; 0: of any width, and all of `piece` comes back.
  std::string Push(std::string_view piece, int columns);
  // The rest, at the end of the text.
  std::string Finish(int columns);

 private:
  // Adds the word that waits to `out`, with the blanks before it or a line end.
  void PutWord(int columns, std::string* out);
  // Ends it with a blank or a line end.
  void EndWord(std::string_view blank, int columns, std::string* out);
  void AddToWord(std::string_view bytes, const TerminalCharacter& character,
                 int columns, std::string* out);

  int column_ = 0;      // where the line that was given out ends
  std::string blanks_;  // behind it
  std::string word_;    // behind these
  int word_columns_ = 0;
  bool ends_wide_ = false;  // the word's last character is a wide one
  bool is_long_ = false;    // a word goes on that has lines of its own
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_WORD_WRAP_H_
