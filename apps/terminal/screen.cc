#include "apps/terminal/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "apps/cli/numbers.h"
#include "apps/terminal/output.h"
#include "apps/terminal/printable.h"

namespace tiercel::cli {
namespace {

// Goes back to the first column, and clears the line to its end.
constexpr std::string_view kEraseLine = "\r\x1b[K";

std::string status;                     // the line that is drawn; empty: none
std::atomic<bool> status_shown{false};  // the same, for a signal handler
bool line_is_open = false;              // the text above it goes on there

int Columns(int fd) {
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    const std::optional<int64_t> number = ParseInt(columns);
    if (number.has_value() && *number > 0 && *number < 10'000) {
      return static_cast<int>(*number);
    }
  }
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void DrawStatus() {
  WriteAll(STDERR_FILENO, std::string(kEraseLine) + status, "to stderr")
      .IgnoreError();
  status_shown.store(true);
}

void EraseStatus() {
  if (!status_shown.exchange(false)) return;
  WriteAll(STDERR_FILENO, kEraseLine, "to stderr").IgnoreError();
}

}  // namespace

bool OutIsTerminal() { return isatty(STDOUT_FILENO) == 1; }

bool NotesAreOnTerminal() { return isatty(STDERR_FILENO) == 1; }

bool TerminalDraws() {
  const char* term = std::getenv("TERM");
  return NotesAreOnTerminal() && term != nullptr &&
         std::strcmp(term, "dumb") != 0;
}

int OutColumns() { return Columns(STDOUT_FILENO); }

int NoteColumns() { return Columns(STDERR_FILENO); }

absl::Status WriteOnTerminal(int fd, std::string_view text) {
  if (text.empty()) return absl::OkStatus();
  EraseStatus();
  absl::Status written = WriteAll(fd, Printable(text), "to the terminal");
  line_is_open = text.back() != '\n';
  if (!status.empty() && !line_is_open) DrawStatus();
  return written;
}

void ShowStatus(std::string_view line) {
  if (!TerminalDraws()) return;
  status = Printable(line);
  std::replace(status.begin(), status.end(), '\n', ' ');
  std::replace(status.begin(), status.end(), '\t', ' ');
  if (status.empty()) {
    EraseStatus();
  } else if (!line_is_open) {
    DrawStatus();
  }
}

std::string_view StatusEraser() {
  return status_shown.load() ? kEraseLine : std::string_view();
}

}  // namespace tiercel::cli
