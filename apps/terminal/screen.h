#ifndef TIERCEL_APPS_TERMINAL_SCREEN_H_
#define TIERCEL_APPS_TERMINAL_SCREEN_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tiercel::cli {

// The terminal, if stdout or stderr is one. It shows text that scrolls, and
// below it at most one status line, which is drawn over itself, and never in
// the middle of a line of text. All output to the terminal passes through here,
// except for libedit's display of the typed line.

bool OutIsTerminal();
bool NotesAreOnTerminal();
// Returns true if stderr can draw: it is a terminal, and not TERM=dumb.
// NO_COLOR is not heeded, since the status line has no color.
bool TerminalDraws();

// The current width of the terminal of stdout, or of stderr, whose window may
// be resized: from COLUMNS, or else from the terminal; 0 if neither tells.
int OutColumns();
int NoteColumns();

// Writes to stdout or stderr, which is a terminal, above the status line, as
// Printable makes the text. Errors: those of WriteAll.
absl::Status WriteOnTerminal(int fd, std::string_view text);

// Draws `line` in place of the status line, as soon as no line of text is open;
// an empty one erases it. Does nothing if the terminal does not draw.
void ShowStatus(std::string_view line);
// The bytes that erase the status line, for a signal handler; empty if no
// status line shows.
std::string_view StatusEraser();

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_SCREEN_H_
