#ifndef TIERCEL_APPS_CLI_TRIED_H_
#define TIERCEL_APPS_CLI_TRIED_H_

#include <exception>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Calls of tiercel.hpp, which throws, for code that returns absl::Status.
namespace tiercel::cli {

// The error of a callback on its way through the library.
class Stopped : public std::exception {
 public:
  explicit Stopped(absl::Status status) : status_(std::move(status)) {}
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
};

// Returns the error that was thrown: a callback's as it is, one of the library
// with its code and message, and one of the standard library. Null is no error.
absl::Status StatusOf(const std::exception_ptr& thrown);

// Returns what `call` returns, if anything, or the error that it throws.
template <typename Call>
auto Tried(Call call) {
  using Value = std::invoke_result_t<Call>;
  using Result = std::conditional_t<std::is_void_v<Value>, absl::Status,
                                    absl::StatusOr<Value>>;
  try {
    if constexpr (std::is_void_v<Value>) {
      call();
      return Result();
    } else {
      return Result(call());
    }
  } catch (...) {
    return Result(StatusOf(std::current_exception()));
  }
}

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_CLI_TRIED_H_
