#ifndef TIERCEL_RUNTIME_API_QUEUE_H_
#define TIERCEL_RUNTIME_API_QUEUE_H_

#include <sys/types.h>
#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "include/tiercel_queue.h"
#include "lib/c_api/callers_thread.h"
#include "runtime/api/batch_entry.h"
#include "runtime/api/turns.h"
#include "runtime/model/model.h"
#include "runtime/session/batch.h"

namespace tiercel {

// Entries that a thread makes, several at once. Thread-safe.
class Queue {
 public:
  // Errors: no_thread.
  static absl::StatusOr<std::unique_ptr<Queue>> Create(
      std::shared_ptr<const Model> model, size_t at_once);
  // Cancels what has not ended, and waits for it. Not on the queue's thread.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Errors: those of BatchEntry::Read; invalid_argument, session_in_use;
  // cancelled, while it ends.
  absl::Status Add(const tiercel_batch_entry* entry, tiercel_on_end on_end);
  // Errors: forked, in another process than the one that made it.
  absl::Status CheckProcess() const;
  // Returns true in a callback of an entry, or of a call for which the queue
  // waits.
  bool IsInCallback() const {
    return std::this_thread::get_id() == thread_.get_id() ||
           Turns::HasLent(thread_.get_id());
  }
  // Waits until all entries have ended. Errors: invalid_argument, in such a
  // callback.
  absl::Status Wait();
  size_t running() const;
  size_t waiting() const;

 private:
  struct Job {
    BatchEntry entry;
    tiercel_on_end on_end;
    absl::Status status = {};  // its end, or a callback's exception
    bool cancelled = false;    // by the queue
  };
  // The turn at sessions that share pages, which the queue has while entries
  // are theirs.
  struct Held {
    std::shared_ptr<Turns> turns;
    int64_t entries = 0;
  };

  Queue(std::shared_ptr<const Model> model, size_t at_once)
      : model_(std::move(model)), at_once_(at_once) {}

  absl::Status Take(tiercel_session* session);  // with the lock
  void Release(tiercel_session* session);       // with the lock
  static void Cancel(Job& job);                 // with the lock

  // ---- On the queue's thread ----
  void Work();
  void MakeEntries();
  // The entries that begin before the next pass. Others use their sessions
  // meanwhile.
  std::vector<Batch::Call> Admit(Batch& batch);
  bool HasRoom(const Job& job) const;  // with the lock
  void Make(Job& job, Batch& batch);
  void End(std::list<Job>::iterator job);

  const std::shared_ptr<const Model> model_;
  const size_t at_once_;
  const pid_t process_ = getpid();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // The lock guards these.
  std::list<Job> waiting_;
  std::list<Job> running_;
  int64_t ending_ = 0;  // entries of which on_end is told
  // These are known of the model's vocabulary. Those of a session may be in use
  // by a call on it that has a turn.
  KnownBreakers breakers_ = {};
  std::map<const Turns*, Held> held_;
  bool ends_ = false;
  CallersThread* callers_ = nullptr;  // the queue's thread, for callbacks
  std::thread thread_;                // the last member: it uses the others
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_QUEUE_H_
