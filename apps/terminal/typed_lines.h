#ifndef TIERCEL_APPS_TERMINAL_TYPED_LINES_H_
#define TIERCEL_APPS_TERMINAL_TYPED_LINES_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace tiercel::cli {

// The lines of a stdin that is no terminal, for who takes typed lines. One at a
// time.
class TypedLines {
 public:
  // A longer line is nobody's question.
  static constexpr size_t kMostBytes = size_t{1} << 20;

  // The next line without blanks around it; absent at the end of input. Errors:
  // input_too_large, after which the next line can be read; kIo; a signal.
  absl::StatusOr<std::optional<std::string>> Read();

  // Whether there is more than blanks; waits until that is known. Errors: kIo;
  // a signal.
  absl::StatusOr<bool> AnyLeft();

 private:
  // Adds to read_, or finds the end. Errors: kIo; a signal.
  absl::Status ReadMore();

  std::string read_;  // behind the last line
  bool at_end_ = false;
  bool in_long_line_ = false;  // of which the rest is left out
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_TYPED_LINES_H_
