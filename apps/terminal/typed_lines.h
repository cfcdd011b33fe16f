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
  // input_too_large; kIo; a signal.
  absl::StatusOr<std::optional<std::string>> Read();

 private:
  std::string read_;  // behind the last line
  bool at_end_ = false;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_TYPED_LINES_H_
