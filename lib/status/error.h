#ifndef TIERCEL_LIB_STATUS_ERROR_H_
#define TIERCEL_LIB_STATUS_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tiercel {

// Every failure is an absl::Status made here. It carries
//   - a class, which decides the exit code and the C API's status (the maker),
//   - a stable code in snake_case that scripts may match ("not_gguf"), which is
//     in the table of include/tiercel_error.h under that class, and only there,
//   - a sentence that names the object, what it got and what it needs.
absl::Status UsageError(std::string_view code, std::string_view message);
absl::Status InputError(std::string_view code, std::string_view message);
absl::Status MemoryError(std::string_view code, std::string_view message);
absl::Status DeviceError(std::string_view code, std::string_view message);
absl::Status IoError(std::string_view code, std::string_view message);
absl::Status CancelledError();
absl::Status InternalError(std::string_view code, std::string_view message);

enum class ErrorClass {
  kOk,
  kFailed,     // our own failure
  kUsage,      // a flag, a parameter or a request is wrong
  kInput,      // a model or an input file is invalid or unsupported
  kMemory,     // it does not fit
  kDevice,     // no such device
  kIo,         // the system could not open, read or write
  kCancelled,  // the caller asked to stop
};

ErrorClass ClassOf(const absl::Status& status);

// The stable code of `status`; "internal" for a status not made here.
std::string CodeOf(const absl::Status& status);

// Returns the error `status` with "where: " before its message.
absl::Status Annotate(const absl::Status& status, std::string_view where);

}  // namespace tiercel

#endif  // TIERCEL_LIB_STATUS_ERROR_H_
