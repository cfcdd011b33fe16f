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
// comes while another has the turn is refused; while a queue has it, it waits
// until the queue lets others have turns. Thread-safe.
class Turns {
 public:
  // Takes the turn. Returns false if another call has it, or the calling thread
  // has.
  bool Take();
  // Takes the turn for a queue, which works on `thread`. Returns false if a
  // call or another queue has it.
  bool TakeFor(std::thread::id thread);
  // Lets the calls that wait have their turns before the queue goes on, and
  // deletes sessions that were freed. The queue's thread has the turn.
  void LetOthers();
  // Ends the turn, and deletes sessions that were freed during it; EndQueue
  // ends a queue's.
  void End();
  void EndQueue();
  // Deletes `session` in a turn of its own, or at the end of the current turn,
  // whose call is cancelled if it uses this session.
  void Free(tiercel_session* session);

 private:
  tiercel_session* TakeFreed();  // null: none can be deleted; with the lock

  std::mutex mutex_;
  std::condition_variable changed_;
  bool taken_ = false;
  bool by_queue_ = false;  // the turn is a queue's, which may have lent it
  std::thread::id holder_;
  int64_t waiting_ = 0;               // calls that wait for a queue
  int64_t served_ = 0;                // ... and those that had their turn
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
