#ifndef TIERCEL_LIB_STATUS_STATUS_MACROS_H_
#define TIERCEL_LIB_STATUS_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The two steps that nearly every function takes with a status. They are for
// functions that return absl::Status or absl::StatusOr<T>. The arguments may
// hold commas; a type with a comma of its own takes an alias or `auto`.

// Returns the status of an expression from this function unless it is OK.
#define RETURN_IF_ERROR(...)                                 \
  do {                                                       \
    if (absl::Status return_if_error_status = (__VA_ARGS__); \
        !return_if_error_status.ok()) {                      \
      return return_if_error_status;                         \
    }                                                        \
  } while (false)

// ASSIGN_OR_RETURN(T name, expression) declares `name` with the value of an
// absl::StatusOr, or returns its status from this function. A variable that is
// there already is assigned: ASSIGN_OR_RETURN(*out, expression).
#define ASSIGN_OR_RETURN(target, ...)                                  \
  TIERCEL_ASSIGN_OR_RETURN_(TIERCEL_STATUS_OR_NAME_(__LINE__), target, \
                            __VA_ARGS__)

#define TIERCEL_ASSIGN_OR_RETURN_(status_or, target, ...)    \
  auto status_or = (__VA_ARGS__);                            \
  if (!status_or.ok()) return std::move(status_or).status(); \
  target = *std::move(status_or)
#define TIERCEL_STATUS_OR_NAME_(line) TIERCEL_STATUS_OR_NAME_OF_(line)
#define TIERCEL_STATUS_OR_NAME_OF_(line) tiercel_status_or_##line

#endif  // TIERCEL_LIB_STATUS_STATUS_MACROS_H_
