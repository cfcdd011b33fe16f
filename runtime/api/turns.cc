#include "runtime/api/turns.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>

#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/api/boundary.h"

namespace tiercel {
namespace {

// A turn that the thread has of a queue.
struct Lent {
  const Turns* turns;
  std::thread::id queue;
};

thread_local bool never_waits = false;
thread_local bool in_order = false;
// The turns that the thread has of queues; the last was taken last. Without a
// destructor, so that the library can be unloaded.
constexpr size_t kMostLent = 64;
thread_local Lent lent[kMostLent];
thread_local size_t num_lent = 0;

// The threads that have such turns and wait for another, in order; -1: one
// thread does out of order.
std::atomic<int64_t> holding_waiters = 0;

// A wait of the calling thread for a queue. Threads that have turns of queues
// never wait for each other.
class Wait {
 public:
  explicit Wait(const Turns* turns)
      : holds_(num_lent > 0),
        out_of_order_(
            holds_ &&
            !(in_order && std::less<>()(lent[num_lent - 1].turns, turns))) {
    if (never_waits || num_lent == kMostLent) return;
    int64_t waiters = holding_waiters;
    do {
      if (holds_ && (out_of_order_ ? waiters != 0 : waiters < 0)) return;
    } while (holds_ && !holding_waiters.compare_exchange_weak(
                           waiters, out_of_order_ ? -1 : waiters + 1));
    may_ = true;
  }
  ~Wait() {
    if (may_ && holds_) holding_waiters += out_of_order_ ? 1 : -1;
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  bool may() const { return may_; }

 private:
  const bool holds_;
  const bool out_of_order_;
  bool may_ = false;
};

absl::Status InUse() {
  return UsageError("session_in_use",
                    "session: another call uses it, or a fork of it, which "
                    "takes turns with it");
}

}  // namespace

Turns::InOrder::InOrder() : before_(in_order) { in_order = num_lent == 0; }

Turns::InOrder::~InOrder() { in_order = before_; }

bool Turns::HasLent(std::thread::id queue) {
  return std::any_of(lent, lent + num_lent,
                     [&](const Lent& one) { return one.queue == queue; });
}

bool Turns::Take(const tiercel_session& session) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::thread::id self = std::this_thread::get_id();
  if (taken_ && (!HasQueue() || holder_ == self)) return false;
  if (HasQueue()) {
    const Wait wait(this);
    if (!wait.may()) return false;
    ++waiting_;
    ++session.waits;  // it is not deleted meanwhile
    changed_.wait(lock,
                  [this] { return !taken_ && (lent_ > 0 || !HasQueue()); });
    --session.waits;
    --waiting_;
    if (HasQueue()) lent[num_lent++] = {this, queue_};
    if (lent_ > 0) --lent_;
  }
  taken_ = true;
  holder_ = self;
  return true;
}

void Turns::End() {
  Lent* const end =
      std::remove_if(lent, lent + num_lent,
                     [this](const Lent& one) { return one.turns == this; });
  num_lent = static_cast<size_t>(end - lent);
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
  std::unique_lock<std::mutex> lock(mutex_);
  // A call that comes meanwhile waits for the queue, and is not refused.
  DeleteFreed(lock);
  queue_ = std::thread::id();
  taken_ = false;
  changed_.notify_all();
}

void Turns::DeleteFreed(std::unique_lock<std::mutex>& lock) {
  while (tiercel_session* const session = TakeFreed()) {
    lock.unlock();
    delete session;
    lock.lock();
  }
}

// Sessions with entries stay until these have ended, as do those with calls
// that wait.
tiercel_session* Turns::TakeFreed() {
  tiercel_session** link = &freed_;
  while (*link != nullptr && ((*link)->in_queue || (*link)->waits > 0)) {
    link = &(*link)->freed_next;
  }
  tiercel_session* const session = *link;
  if (session != nullptr) *link = session->freed_next;
  return session;
}

absl::StatusOr<Turn> Turn::At(const tiercel_session& session) {
  // The entry of a queue may take longer than a caller would wait.
  RETURN_IF_ERROR(Check(session));
  if (!session.turns->Take(session)) return InUse();
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
