#include "runtime/api/turns.h"

#include <utility>

#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/api/boundary.h"

namespace tiercel {
namespace {

thread_local bool never_waits = false;

absl::Status InUse() {
  return UsageError("session_in_use",
                    "session: another call uses it, or a fork of it, which "
                    "takes turns with it");
}

}  // namespace

bool Turns::Take() {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::thread::id self = std::this_thread::get_id();
  if (taken_ && (!HasQueue() || holder_ == self)) return false;
  if (HasQueue()) {
    if (never_waits) return false;
    ++waiting_;
    changed_.wait(lock,
                  [this] { return !taken_ && (lent_ > 0 || !HasQueue()); });
    --waiting_;
    if (lent_ > 0) --lent_;
  }
  taken_ = true;
  holder_ = self;
  return true;
}

void Turns::End() {
  std::unique_lock<std::mutex> lock(mutex_);
  DeleteFreed(lock);
  taken_ = false;
  changed_.notify_all();
}

void Turns::Free(tiercel_session* session) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    session->freed_next = std::exchange(freed_, session);
    if (taken_ || HasQueue()) {
      session->session->cancellation().Cancel();
      return;
    }
    taken_ = true;
    holder_ = std::this_thread::get_id();
  }
  End();
}

void Turns::NeverWait() { never_waits = true; }

bool Turns::TakeFor(std::thread::id thread) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (taken_ || HasQueue()) return false;
  taken_ = true;
  holder_ = thread;
  queue_ = thread;
  return true;
}

void Turns::Lend() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!taken_ || holder_ != queue_) return;
  DeleteFreed(lock);
  if (waiting_ == 0) return;
  lent_ = waiting_;
  taken_ = false;
  changed_.notify_all();
}

bool Turns::TakeBack() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (taken_) return holder_ == queue_;
  if (lent_ > 0) return false;
  taken_ = true;
  holder_ = queue_;
  return true;
}

void Turns::EndQueue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_ = std::thread::id();
  }
  End();
}

void Turns::DeleteFreed(std::unique_lock<std::mutex>& lock) {
  while (tiercel_session* const session = TakeFreed()) {
    lock.unlock();
    delete session;
    lock.lock();
  }
}

// Sessions with entries stay until these have ended.
tiercel_session* Turns::TakeFreed() {
  tiercel_session** link = &freed_;
  while (*link != nullptr && (*link)->in_queue) link = &(*link)->freed_next;
  tiercel_session* const session = *link;
  if (session != nullptr) *link = session->freed_next;
  return session;
}

absl::StatusOr<Turn> Turn::At(const tiercel_session& session) {
  // The entry of a queue may take longer than a caller would wait.
  RETURN_IF_ERROR(Check(session));
  if (!session.turns->Take()) return InUse();
  Turn turn(session);
  RETURN_IF_ERROR(Check(session));
  return turn;
}

absl::Status Turn::Check(const tiercel_session& session) {
  return session.in_queue ? InUse() : absl::OkStatus();
}

Turn::Turn(const tiercel_session& session)
    : session_(&session), turns_(session.turns) {}

Turn::~Turn() {
  if (turns_ == nullptr) return;
  session_->length = session_->session->sequence().tokens().size();
  turns_->End();
}

}  // namespace tiercel
