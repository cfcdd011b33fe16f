#ifndef TIERCEL_APPS_TERMINAL_LINE_EDITOR_H_
#define TIERCEL_APPS_TERMINAL_LINE_EDITOR_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "apps/terminal/history_file.h"

namespace tiercel::cli {

// Lines typed on the terminal that stdin and stdout are, edited as libedit
// does (arrows, Ctrl-A, Ctrl-R and so on), each remembered for the next. Input
// is UTF-8 whatever the locale says; what is none becomes U+FFFD. Between two
// lines the terminal is as the program found it. One at a time.
class LineEditor {
 public:
  // `prompt` is ASCII. Lines are remembered in `history`, for the next editor
  // too; where they cannot be kept a warning says so. Errors: no_terminal.
  static absl::StatusOr<std::unique_ptr<LineEditor>> Create(
      const std::string& prompt, HistoryFile history);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The next line without blanks around it; absent at the end of input
  // (Ctrl-D on an empty line). Ctrl-C drops what was typed, and begins anew.
  // Errors: another signal, by which the line is lost.
  absl::StatusOr<std::optional<std::string>> Read();

 private:
  class Libedit;
  explicit LineEditor(std::unique_ptr<Libedit> libedit);

  const std::unique_ptr<Libedit> libedit_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_LINE_EDITOR_H_
