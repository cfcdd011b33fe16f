#ifndef TIERCEL_RUNTIME_API_TURNS_H_
#define TIERCEL_RUNTIME_API_TURNS_H_

#include <memory>
#include <mutex>

#include "absl/status/statusor.h"

struct tiercel_session;

namespace tiercel {

// A session and its forks share pages, so their calls take turns: a call that
// comes while another has the turn is refused. Thread-safe.
class Turns {
 public:
  // Takes the turn. Returns false if another call has it.
  bool Take();
  // Ends the turn, and deletes sessions that were freed during it.
  void End();
  // Deletes `session` in a turn of its own, or at the end of the current turn,
  // whose call is cancelled if it uses this session.
  void Free(tiercel_session* session);

 private:
  std::mutex mutex_;
  bool taken_ = false;
  tiercel_session* freed_ = nullptr;  // first in the list of sessions to delete
};

// The turn of a call, which ends when this is destroyed.
class Turn {
 public:
  // Errors: session_in_use.
  static absl::StatusOr<Turn> At(const tiercel_session& session);
  Turn(Turn&&) = default;
  ~Turn();

 private:
  explicit Turn(const tiercel_session& session);

  const tiercel_session* session_;
  std::shared_ptr<Turns> turns_;  // null: moved from
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_TURNS_H_
