#include "runtime/api/turns.h"

#include <utility>

#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/api/boundary.h"

namespace tiercel {
namespace {

absl::Status InUse() {
  return UsageError("session_in_use",
                    "session: another call uses it, or a fork of it, which "
                    "takes turns with it");
}

}  // namespace

bool Turns::Take() {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::thread::id self = std::this_thread::get_id();
  if (taken_ && (!by_queue_ || holder_ == self)) return false;
  if (taken_) {
    ++waiting_;
    changed_.wait(lock, [this] { return !taken_; });
    --waiting_;
    ++served_;
  }
  taken_ = true;
  holder_ = self;
  return true;
}

bool Turns::TakeFor(std::thread::id thread) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (taken_ || by_queue_) return false;
  taken_ = true;
  by_queue_ = true;
  holder_ = thread;
  return true;
}

void Turns::LetOthers() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (tiercel_session* const session = TakeFreed()) {
    lock.unlock();
    delete session;
    lock.lock();
  }
  if (waiting_ == 0) return;
  const int64_t until = served_ + waiting_;
  taken_ = false;
  changed_.notify_all();
  changed_.wait(lock, [&] { return served_ >= until && !taken_; });
  taken_ = true;
  holder_ = std::this_thread::get_id();
}

void Turns::End() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (tiercel_session* const session = TakeFreed()) {
    lock.unlock();
    delete session;
    lock.lock();
  }
  taken_ = false;
  changed_.notify_all();
}

// Sessions with entries stay until these have ended.
tiercel_session* Turns::TakeFreed() {
  tiercel_session** link = &freed_;
  while (*link != nullptr && (*link)->in_queue) link = &(*link)->freed_next;
  tiercel_session* const session = *link;
  if (session != nullptr) *link = session->freed_next;
  return session;
}

void Turns::EndQueue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    by_queue_ = false;
  }
  End();
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
    holder_ = std::this_thread::get_id();
  }
  End();
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
