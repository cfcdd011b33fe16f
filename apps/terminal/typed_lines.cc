#include "apps/terminal/typed_lines.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "apps/cli/error.h"
#include "apps/terminal/signals.h"
#include "lib/status/status_macros.h"

namespace tiercel::cli {

absl::StatusOr<std::optional<std::string>> TypedLines::Read() {
  size_t searched = 0;
  for (;;) {
    const size_t end = read_.find('\n', searched);
    const size_t after = end == std::string::npos ? read_.size() : end + 1;
    if (in_long_line_) {
      read_.erase(0, after);
      in_long_line_ = end == std::string::npos;
      searched = 0;
      if (!in_long_line_) continue;
    } else if (end != std::string::npos || (at_end_ && !read_.empty())) {
      const std::string line(absl::StripAsciiWhitespace(read_.substr(0, end)));
      read_.erase(0, after);
      return line;
    } else if (read_.size() > kMostBytes) {
      in_long_line_ = true;
      return Error(Exit::kInput, "input_too_large",
                   absl::StrCat("stdin: got a line of over ", kMostBytes,
                                " bytes, reads no longer ones"));
    }
    if (at_end_) return std::nullopt;
    searched = read_.size();
    RETURN_IF_ERROR(ReadMore());
  }
}

absl::StatusOr<bool> TypedLines::AnyLeft() {
  while (absl::StripAsciiWhitespace(read_).empty()) {
    if (at_end_) return false;
    read_.clear();
    RETURN_IF_ERROR(ReadMore());
  }
  return true;
}

absl::Status TypedLines::ReadMore() {
  if (!WaitToRead(STDIN_FILENO)) return Interrupted();
  char bytes[4096];
  const ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (got > 0) {
    read_.append(bytes, static_cast<size_t>(got));
  } else if (got == 0) {
    at_end_ = true;
  } else if (errno != EINTR) {
    return SystemError("reading stdin");
  }
  return absl::OkStatus();
}

}  // namespace tiercel::cli
