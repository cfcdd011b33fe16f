#ifndef TIERCEL_RUNTIME_API_TURNS_H_
#define TIERCEL_RUNTIME_API_TURNS_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/statusor.h"

struct tiercel_session;

namespace tiercel {

// A session and its forks share pages, so their calls take turns: a call that
// comes while another has the turn is refused. While a queue has the turn it
// waits until the queue lends it. Thread-safe.
class Turns {
 public:
  // Takes the turn for a call on `session`. Returns false if another call has
  // it, or the calling thread has, or would have to wait and may not, because
  // it has a turn that a queue has lent, and so has another thread that waits.
  bool Take(const tiercel_session& session);
  // Ends the turn, and deletes sessions that were freed during it.
  void End();
  // Deletes `session` in a turn of its own, or at the end of the current turn,
  // whose call is cancelled if it uses this session.
  void Free(tiercel_session* session);

  // ---- For a queue, which works on one thread ----

  // While it lives, the thread takes the turns of one call in the order of
  // their addresses, so that two threads never wait for each other.
  class InOrder {
   public:
    InOrder();
    ~InOrder();
    InOrder(const InOrder&) = delete;
    InOrder& operator=(const InOrder&) = delete;

   private:
    const bool before_;
  };

  // The calling thread waits for no queue, since others may wait for it.
  static void NeverWait();
  // Returns true if the calling thread has a turn that this queue has lent.
  static bool HasLent(std::thread::id queue);
  // Takes the turn for the queue of `thread`. Returns false if a call or
  // another queue has it.
  bool TakeFor(std::thread::id thread);
  // Lends the turn to the calls that wait now, and deletes sessions that were
  // freed. Does nothing if it is lent.
  void Lend();
  // Takes the turn back once those calls have had it. Returns false before.
  bool TakeBack();
  void EndQueue();  // ends the queue's turn, as End

 private:
  tiercel_session* TakeFreed();  // null: none can be deleted; with the lock
  void DeleteFreed(std::unique_lock<std::mutex>& lock);
  bool HasQueue() const { return queue_ != std::thread::id(); }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool taken_ = false;
  std::thread::id holder_;
  std::thread::id queue_;  // the queue that has the turn or has lent it
  int64_t waiting_ = 0;    // calls that wait for the queue
  int64_t lent_ = 0;       // turns that these may still take
  tiercel_session* freed_ = nullptr;  // first in the list of sessions to delete
};

// The turn of a call, which ends when this is destroyed.
class Turn {
 public:
  // Errors: session_in_use, also if a queue has an entry of the session.
  static absl::StatusOr<Turn> At(const tiercel_session& session);
  // For another session whose turn is taken with this one's. Errors:
  // session_in_use, for an entry.
  static absl::Status Check(const tiercel_session& session);
  Turn(Turn&&) = default;
  ~Turn();

 private:
  explicit Turn(const tiercel_session& session);

  const tiercel_session* session_;
  std::shared_ptr<Turns> turns_;  // null: moved from
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_TURNS_H_
