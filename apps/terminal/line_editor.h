#ifndef TIERCEL_APPS_TERMINAL_LINE_EDITOR_H_
#define TIERCEL_APPS_TERMINAL_LINE_EDITOR_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "apps/terminal/history_file.h"

namespace tiercel::cli {

// Reads lines typed on the terminal of stdin and stdout, edited by libedit
// (arrows, Ctrl-A, Ctrl-R and so on), and remembers each. Input is UTF-8
// whatever the locale says; invalid bytes become U+FFFD. Between two lines the
// terminal is in the mode in which the program found it. Only one may exist at
// a time.
class LineEditor {
 public:
  // `prompt` is ASCII. Lines are remembered in `history`, for the next editor
  // too; a warning says so if they cannot be kept. Errors: no_terminal.
  static absl::StatusOr<std::unique_ptr<LineEditor>> Create(
      const std::string& prompt, HistoryFile history);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The next line without blanks around it; absent at the end of input
  // (Ctrl-D on an empty line). Ctrl-C drops the line, and begins a new one.
  // Errors: another signal, which loses the line.
  absl::StatusOr<std::optional<std::string>> Read();

 private:
  class Libedit;
  explicit LineEditor(std::unique_ptr<Libedit> libedit);

  const std::unique_ptr<Libedit> libedit_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_LINE_EDITOR_H_
