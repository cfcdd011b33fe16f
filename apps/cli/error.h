#ifndef TIERCEL_APPS_CLI_ERROR_H_
#define TIERCEL_APPS_CLI_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tiercel::cli {

// The exit status of the program; 128 + the signal's number if a signal ended
// it.
enum class Exit {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,   // a command, a flag or a variable is wrong
  kInput = 3,   // a model or an input file is invalid or unsupported
  kMemory = 4,  // it does not fit
  kDevice = 5,  // no such device
  kIo = 6,      // the system could not open, read or write
};

// A failure that ends the program with `exit`. `code` is stable, snake_case,
// for scripts; `message` is a sentence for people that names the flag or file,
// what was given and what is needed. It is empty if the output has said it.
absl::Status Error(Exit exit, std::string_view code, std::string_view message);

// kUsage, "usage".
absl::Status UsageError(std::string_view message);

// Makes "open 'PATH': REASON", with the reason from errno; kIo, "io_error".
absl::Status SystemError(std::string_view what);

// A signal stopped the work. main reports Interrupted; it adds nothing to
// InterruptedInOutput, which the output has reported.
absl::Status Interrupted();
absl::Status InterruptedInOutput();
bool IsInterrupted(const absl::Status& status);

// The reader of our output has closed it. The program ends, without a failure.
absl::Status ReaderGone();
bool IsReaderGone(const absl::Status& status);

// The exit status and the code of a status; kFailed and "internal" if it was
// not made here.
Exit ExitOf(const absl::Status& status);
std::string CodeOf(const absl::Status& status);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_ERROR_H_
