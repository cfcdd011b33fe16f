#ifndef TIERCEL_RUNTIME_API_BATCH_ENTRY_H_
#define TIERCEL_RUNTIME_API_BATCH_ENTRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/api/boundary.h"
#include "runtime/api/session_params.h"

namespace tiercel {

// Runs a callback of the program where it wants it to run. Returns false if the
// callback does, or could not run.
using CallOut = absl::FunctionRef<bool(absl::FunctionRef<bool()>)>;

// Generates in a session whose turn the call has, and keeps the report. Its
// callbacks, which get `user_data` but for the mask, are those of `thread`.
absl::Status GenerateIn(tiercel_session* session, SamplingRequest sampling,
                        tiercel_on_token on_token, void* user_data,
                        CallersThread& thread, CallOut call_out);

// A generation of a batch or of a queue, with copies of its arguments.
class BatchEntry {
 public:
  // `name` stands for it in errors. `take` checks its session and takes the
  // turn at it; it returns the breakers that are known of the session's
  // vocabulary. Errors: those of ReadStruct, of ReadSampling and of `take`;
  // null_argument.
  static absl::StatusOr<BatchEntry> Read(
      const std::string& name, const tiercel_batch_entry* entry,
      absl::FunctionRef<absl::StatusOr<KnownBreakers*>(tiercel_session*)> take);

  // Reads the prompt, if there is one, and generates. `thread` is the one that
  // runs callbacks. Throws nothing.
  absl::Status Make(CallersThread& thread, CallOut call_out) const;
  // Gives the program the status that it ended with.
  void Report(const absl::Status& status) const;

  tiercel_session* session() const { return in_.session; }
  void* user_data() const { return in_.user_data; }
  // The tokens of its session that stay when it begins, and the most that the
  // session may come to hold.
  int64_t KeptTokens() const;
  int64_t MostTokens() const;

 private:
  absl::Status ReadAndGenerate(CallersThread& thread, CallOut call_out) const;

  tiercel_batch_entry in_ = {};
  std::optional<std::vector<int32_t>> prompt_;  // absent: it reads none
  SamplingRequest sampling_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_BATCH_ENTRY_H_
