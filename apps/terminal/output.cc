#include "apps/terminal/output.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "apps/cli/error.h"
#include "apps/terminal/signals.h"

namespace tiercel::cli {

absl::Status WriteAll(int fd, std::string_view text, std::string_view name) {
  if (fd == STDOUT_FILENO && !text.empty()) NoteOutput();
  while (!text.empty()) {
    // So little never blocks: a signal is noticed while a reader sleeps.
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
  return WriteAll(STDOUT_FILENO, text, "to stdout");
}

std::string Dump(const Json& document) {
  return document.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false,
                       Json::error_handler_t::replace);
}

absl::Status WriteJson(const Json& document) {
  return WriteOut(Dump(document) + "\n");
}

std::string TableRow(const std::string& name, const std::string& value,
                     size_t column) {
  const size_t pad = name.size() < column ? column - name.size() : 1;
  return name + std::string(pad, ' ') + value + "\n";
}

void WriteNote(std::string_view text) {
  WriteAll(STDERR_FILENO, text, "to stderr").IgnoreError();
}

void WriteWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    WriteNote("warning: " + Printable(warning) + "\n");
  }
}

std::string Printable(std::string text) {
  for (char& c : text) {
    if ((c >= 0 && c < ' ' && c != '\n') || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace tiercel::cli
