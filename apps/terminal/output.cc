#include "apps/terminal/output.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "apps/cli/error.h"
#include "apps/terminal/printable.h"
#include "apps/terminal/screen.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {
namespace {

// Breaks a whole text for a terminal that is `columns` columns wide.
std::string Wrapped(std::string_view text, int columns) {
  WordWrap wrap;
  std::string lines = wrap.Push(Printable(text), columns);
  lines += wrap.Finish(columns);
  return lines;
}

// The codes of a terminal for grey text, and for its own color; empty where it
// has none, or the user wants none (no-color.org).
bool HasColors() {
  const char* const none = getenv("NO_COLOR");
  const char* const term = getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  return !dumb && (none == nullptr || *none == '\0');
}
std::string_view Grey() { return HasColors() ? "\x1b[90m" : ""; }
std::string_view NoColor() { return HasColors() ? "\x1b[39m" : ""; }

}  // namespace

absl::Status WriteAll(int fd, std::string_view text, std::string_view name) {
  if (fd == STDOUT_FILENO && !text.empty()) NoteOutput();
  while (!text.empty()) {
    // A write of PIPE_BUF bytes does not block after WaitToWrite, so a signal
    // is noticed while the reader sleeps.
    if (!WaitToWrite(fd)) return Interrupted();
    const ssize_t written =
        write(fd, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      return ReaderGone();
    } else if (errno != EINTR && errno != EAGAIN) {
      return SystemError(std::string("writing ").append(name));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteOut(std::string_view text) {
  return OutIsTerminal() ? WriteOnTerminal(STDOUT_FILENO, text)
                         : WriteAll(STDOUT_FILENO, text, "to stdout");
}

std::string Dump(const Json& document) {
  return document.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false,
                       Json::error_handler_t::replace);
}

absl::Status WriteJson(const Json& document) {
  const std::string text = Dump(document) + "\n";
  return WriteOut(OutIsTerminal() ? PrintableJson(text) : text);
}

std::string TableRow(const std::string& name, const std::string& value,
                     size_t column) {
  const size_t pad = name.size() < column ? column - name.size() : 1;
  return name + std::string(pad, ' ') + value + "\n";
}

void WriteNote(std::string_view text) {
  if (!NotesAreOnTerminal()) {
    WriteAll(STDERR_FILENO, Printable(text), "to stderr").IgnoreError();
    return;
  }
  WriteOnTerminal(STDERR_FILENO, Wrapped(text, NoteColumns())).IgnoreError();
}

void WriteWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    WriteNote("warning: " + warning + "\n");
  }
}

void WriteNewWarnings(const std::vector<std::string>& warnings) {
  static std::set<std::string>* const said = new std::set<std::string>;
  for (const std::string& warning : warnings) {
    if (said->insert(warning).second) WriteWarnings({warning});
  }
}

namespace {

// Writes a code of the terminal, which WriteOut would show as text.
absl::Status WriteCode(std::string_view code) {
  return WriteAll(STDOUT_FILENO, code, "to stdout");
}

}  // namespace

absl::Status ProseWriter::Write(std::string_view text) {
  if (!OutIsTerminal()) return WriteOut(text);
  if (thinks_ && !text.empty()) {
    RETURN_IF_ERROR(Finish());
    RETURN_IF_ERROR(WriteOut("\n\n"));
    wrap_ = WordWrap();
  }
  return WriteOut(wrap_.Push(Printable(text), OutColumns()));
}

absl::Status ProseWriter::WriteThought(std::string_view text) {
  if (!OutIsTerminal() || text.empty()) return absl::OkStatus();
  if (!std::exchange(thinks_, true)) RETURN_IF_ERROR(WriteCode(Grey()));
  return WriteOut(wrap_.Push(Printable(text), OutColumns()));
}

absl::Status ProseWriter::Finish() {
  RETURN_IF_ERROR(WriteOut(wrap_.Finish(OutColumns())));
  return std::exchange(thinks_, false) ? WriteCode(NoColor())
                                       : absl::OkStatus();
}

absl::Status WriteProse(std::string_view text) {
  return OutIsTerminal() ? WriteOut(Wrapped(text, OutColumns()))
                         : WriteOut(text);
}

}  // namespace tiercel::cli
