#ifndef TIERCEL_APPS_COMMANDS_WATCHED_H_
#define TIERCEL_APPS_COMMANDS_WATCHED_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/tried.h"
#include "apps/terminal/output.h"
#include "apps/terminal/progress.h"
#include "include/tiercel.hpp"
#include "lib/status/status_macros.h"

// Callbacks of the library that check for a signal, so that none is missed
// between two calls, and its JSON.
namespace tiercel::cli {

// An error that they return ends the call with that error.
using TokenFn = std::function<absl::Status(const Token& token)>;
using RowFn = std::function<absl::Status(size_t index, const float* logits)>;

// Returns true. Throws an error, and an interruption if a signal came.
bool GoesOn(const absl::Status& status = absl::OkStatus());

// Make callbacks for the library, which end the call after a signal. What they
// are made of must outlive them.
tiercel::Progress Watched(const ProgressFn& progress);
OnToken Watched(const TokenFn& on_token);
OnRow Watched(const RowFn& on_row);
TextLimits Watched(const TextLimits& limits);

// Parses the library's JSON.
absl::StatusOr<Json> Parsed(const std::string& json);

// Returns the JSON that `call` returns as text, or the error that it throws.
template <typename Call>
absl::StatusOr<Json> TriedJson(Call call) {
  ASSIGN_OR_RETURN(const std::string json, Tried(call));
  return Parsed(json);
}

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_WATCHED_H_
