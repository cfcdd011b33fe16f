#ifndef TIERCEL_RUNTIME_API_SESSION_CALLS_H_
#define TIERCEL_RUNTIME_API_SESSION_CALLS_H_

// The beginning and the end of a call on a session.

#include <cstddef>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "lib/status/error.h"
#include "runtime/api/boundary.h"
#include "runtime/api/turns.h"
#include "runtime/generate/report.h"

namespace tiercel {

// Returns true if another process made the session, and this was forked.
bool IsForked(const tiercel_session* session);

// Takes a call's turn at its session. Errors: null_argument, forked,
// session_in_use.
absl::StatusOr<Turn> TurnAt(const tiercel_session* session);

// Runs a call that tiercel_session_cancel stops, even if it came before the
// call. A call that returns "cancelled" has answered it. A caller who cancels
// waits for no disk either.
template <typename Call>
absl::Status Stoppable(tiercel_session* session, Call call) {
  // The workspace is free for other sessions afterwards, however this ends.
  const absl::Cleanup rest = [&] {
    session->session->runner().Rest();
    session->policy->Rest();
  };
  const absl::Status status = call();
  if (ClassOf(status) == ErrorClass::kCancelled) {
    session->session->cancellation().Clear();
    if (SessionPromptCache* const cache = session->session->prompt_cache()) {
      cache->Stop();
    }
  }
  return status;
}

// Keeps the report of the session's last work.
void Keep(Report report, tiercel_session* session);

// Runs a Stoppable call that tells the log at its end.
template <typename Call>
absl::Status Stoppable(tiercel_session* session, CallersThread& thread,
                       Call call) {
  return Told(session->log, thread, Stoppable(session, call));
}

// Note in the log, if there is one, what the last work was.
void NoteRead(const tiercel_session& session);
void NoteGenerated(const tiercel_session& session);

// Keeps the first `length` tokens.
void TruncateTo(size_t length, tiercel_session* session);
// Keeps the report of `count` tokens that `add` appends.
absl::Status AddInto(
    tiercel_session* session, size_t count,
    absl::FunctionRef<absl::StatusOr<PrefillReport>(Session&)> add);
// Appends tokens and keeps the report, as tiercel_session_prefill; or makes the
// session hold these tokens, as tiercel_session_read.
absl::Status PrefillInto(tiercel_session* session, const int32_t* ids,
                         size_t count, Session::Progress progress);
absl::Status ReadInto(tiercel_session* session, const int32_t* ids,
                      size_t count, Session::Progress progress);

// Begins a new text if `added` tokens were added that were not generated.
// Without any the text before goes on.
void BeginText(size_t added, tiercel_session* session);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_SESSION_CALLS_H_
