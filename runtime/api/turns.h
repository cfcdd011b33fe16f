#ifndef TIERCEL_RUNTIME_API_TURNS_H_
#define TIERCEL_RUNTIME_API_TURNS_H_

#include <memory>
#include <mutex>

#include "absl/status/statusor.h"

struct tiercel_session;

namespace tiercel {

// A session and its forks share pages: their calls take turns, and a call that
// comes while another has the turn is refused. Thread-safe.
class Turns {
 public:
  // False: another call has it.
  bool Take();
  // Sessions that were freed during the turn go now.
  void End();
  // Deletes `session` in a turn of its own, or at the end of the one that a
  // call has, which is cancelled if it is this session's.
  void Free(tiercel_session* session);

 private:
  std::mutex mutex_;
  bool taken_ = false;
  tiercel_session* freed_ = nullptr;  // the first of those to be deleted
};

// The turn of a call, until this is destroyed.
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
