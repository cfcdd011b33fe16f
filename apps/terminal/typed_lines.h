#ifndef TIERCEL_APPS_TERMINAL_TYPED_LINES_H_
#define TIERCEL_APPS_TERMINAL_TYPED_LINES_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace tiercel::cli {

// Reads the lines of a stdin that is no terminal, in place of typed lines. Only
// one may exist at a time.
class TypedLines {
 public:
  // A longer line cannot be a question.
  static constexpr size_t kMostBytes = size_t{1} << 20;

  // The next line without blanks around it; absent at the end of input. Errors:
  // input_too_large, after which the next line can be read; kIo; a signal.
  absl::StatusOr<std::optional<std::string>> Read();

  // Returns true if more than blanks is left; waits until that is known.
  // Errors: kIo; a signal.
  absl::StatusOr<bool> AnyLeft();

 private:
  // Reads more bytes into read_, or sets at_end_. Errors: kIo; a signal.
  absl::Status ReadMore();

  std::string read_;  // bytes behind the last line
  bool at_end_ = false;
  bool in_long_line_ = false;  // the rest of a line too long is skipped
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_TYPED_LINES_H_
