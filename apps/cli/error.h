#ifndef TIERCEL_APPS_CLI_ERROR_H_
#define TIERCEL_APPS_CLI_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tiercel::cli {

// How the program ends. 128 + the signal's number where a signal ended it.
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
// for scripts; `message` is a sentence for people: who, got, needed. It is
// empty where the output has said it.
absl::Status Error(Exit exit, std::string_view code, std::string_view message);

// kUsage, "usage".
absl::Status UsageError(std::string_view message);

// "open 'PATH': REASON" from errno as it is at the call; kIo, "io_error".
absl::Status SystemError(std::string_view what);

// The work was stopped by a signal, and how main reports it: nothing more where
// the output has said it.
absl::Status Interrupted();
absl::Status InterruptedInOutput();
bool IsInterrupted(const absl::Status& status);

// The reader of our output went away: not a failure, there is just nobody left
// to write to.
absl::Status ReaderGone();
bool IsReaderGone(const absl::Status& status);

// kFailed and "internal" for a status not made here.
Exit ExitOf(const absl::Status& status);
std::string CodeOf(const absl::Status& status);

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_ERROR_H_
