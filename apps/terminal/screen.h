#ifndef TIERCEL_APPS_TERMINAL_SCREEN_H_
#define TIERCEL_APPS_TERMINAL_SCREEN_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tiercel::cli {

// The terminal, where stdout or stderr is one: text that scrolls, and below it
// at most one status line, which is drawn over itself, and never in the middle
// of a line of text. All that goes there passes here (but what libedit shows of
// a line that is typed).

bool OutIsTerminal();
bool NotesAreOnTerminal();
// Whether stderr can draw: it is a terminal, and not TERM=dumb. NO_COLOR is
// about colour, of which the status line has none.
bool TerminalDraws();

// How wide the terminal of stdout, or of stderr, is now: the window may be
// resized. COLUMNS says it, or the terminal; 0: nobody does.
int OutColumns();
int NoteColumns();

// Writes to stdout or stderr, which is a terminal, above the status line, with
// a '?' for what would drive it (Printable). Errors: those of WriteAll.
absl::Status WriteOnTerminal(int fd, std::string_view text);

// Draws `line` in place of the one that is there, as soon as no line of text is
// open; an empty one takes it away. Nothing where the terminal does not draw.
void ShowStatus(std::string_view line);
// For a signal handler: what takes the status line away, or nothing.
std::string_view StatusEraser();

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_SCREEN_H_
