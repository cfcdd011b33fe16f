#include "runtime/api/turns.h"

#include <utility>

#include "lib/status/error.h"
#include "runtime/api/boundary.h"

namespace tiercel {

bool Turns::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !std::exchange(taken_, true);
}

void Turns::End() {
  for (;;) {
    tiercel_session* session;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      session = freed_;
      if (session == nullptr) {
        taken_ = false;
        return;
      }
      freed_ = session->freed_next;
    }
    delete session;
  }
}

void Turns::Free(tiercel_session* session) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    session->freed_next = std::exchange(freed_, session);
    if (taken_) {
      session->session->cancellation().Cancel();
      return;
    }
    taken_ = true;
  }
  End();
}

absl::StatusOr<Turn> Turn::At(const tiercel_session& session) {
  if (session.turns->Take()) return Turn(session);
  return UsageError("session_in_use",
                    "session: another call uses it, or a fork of it, which "
                    "takes turns with it");
}

Turn::Turn(const tiercel_session& session)
    : session_(&session), turns_(session.turns) {}

Turn::~Turn() {
  if (turns_ == nullptr) return;
  session_->length = session_->session->sequence().tokens().size();
  turns_->End();
}

}  // namespace tiercel
