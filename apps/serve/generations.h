#ifndef TIERCEL_APPS_SERVE_GENERATIONS_H_
#define TIERCEL_APPS_SERVE_GENERATIONS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/cli/options.h"
#include "apps/commands/model.h"
#include "apps/commands/queue.h"
#include "apps/commands/sampling.h"
#include "apps/commands/session.h"
#include "apps/commands/watched.h"

namespace tiercel::serve {

using cli::Json;

// Generations that come and go, several at once in one queue of the library.
// Each is made in the session that holds the longest beginning of its prompt,
// so that this is not read again. Sessions stay when a generation has ended,
// those unused for longest go first. Where taking one would lose a text that is
// not the prompt's, a fork of it is taken. A long prompt is read in steps, so
// that one that is cancelled leaves half of what was read of it, or more. A
// generation has the bytes that it has alone, whatever was made before or is
// made beside it.
//
// Thread-safe. Callbacks run on threads of this class: those of one generation
// come one at a time and in order, and they must not wait.
class Generations {
 public:
  struct Job {
    std::vector<int32_t> prompt;
    cli::SamplingOptions sampling;
    // The tokens of the prompt that were found, and those that were read since;
    // at the beginning, too, and again if it begins anew for lack of memory.
    std::function<void(size_t found, size_t read)> on_read;
    std::function<void(const Token& token)> on_token;
    // The session's report, also of a generation that was cancelled; null: it
    // had not begun.
    std::function<void(const absl::Status& status, const Json& report)> on_end;
  };
  using Id = uint64_t;

  // Opens sessions for `parallel` generations at once, or for as many as memory
  // has room for, and says so. Both references must outlive it. Errors: those
  // of a session, of rates, and of the draft model.
  static absl::StatusOr<std::unique_ptr<Generations>> Open(
      const cli::Options& options, const cli::Model& model, size_t parallel);
  // Cancels what has not ended, and waits for it.
  ~Generations();
  Generations(const Generations&) = delete;
  Generations& operator=(const Generations&) = delete;

  // Adds a generation, unless as many wait already as `most_waiting` allows
  // beside those that are made; absent: it was not added.
  std::optional<Id> Add(Job job, size_t most_waiting);
  // Ends a generation soon, if it has not ended; on_end says so.
  void Cancel(Id id);
  void CancelAll();

  int64_t context() const { return context_; }  // tokens of prompt and answer
  size_t parallel() const { return parallel_; }
  size_t running() const;
  size_t waiting() const;

 private:
  struct Slot {
    cli::Session session;
    std::vector<int32_t> held = {};  // while it is idle: its tokens
    uint64_t used = 0;               // rises with each use
    bool busy = false;
  };
  struct Task {
    Id id;
    Job job;
    cli::ApiTexts texts = {};
    cli::Queue::Results results = {};
    Slot* slot = nullptr;  // null: it waits
    // Tokens of the prompt: those that were found so far, those that the slot
    // holds, and those up to which the entry in the queue reads.
    std::optional<size_t> found = {};
    size_t kept = 0;
    size_t read_to = 0;
    bool began = false;     // it has given a token
    bool in_queue = false;  // the lock guards these, too
    bool cancelled = false;
    absl::Status status = {};
  };

  Generations(const cli::Options& options, const cli::Model& model)
      : options_(options), model_(model) {}
  absl::Status OpenSessions(size_t parallel);

  // ---- On its thread ----
  void Work();
  // Chooses a session for the task and adds it to the queue. Returns false if
  // it has to wait until another ends.
  bool Begin(Task& task);
  absl::StatusOr<Slot*> ChooseSlot(const Task& task);
  absl::StatusOr<Slot*> AddSlot(const cli::Session& from);
  // Adds a step of the prompt, or the last one with the answer.
  absl::Status AddToQueue(Task& task);
  // Returns true if the task goes on, since a step of its prompt has ended.
  // Errors: those of a session and of AddToQueue.
  absl::StatusOr<bool> GoOn(Task& task);
  // Adds what a step, by its report, found on disk.
  static void NoteFound(Task& task, const Json& report);
  // Makes the tokens of a slot those that its session holds once it has read.
  static void HoldPrompt(Task& task);
  // Frees idle sessions until those of all tasks, and of a new one, have room
  // among the tokens that memory was planned for.
  void MakeRoom(const Task& task, const Slot* chosen);
  // Frees the idle session that is unused for longest; false: there is none.
  bool FreeOldest(const Slot* but);
  // Takes a task that has ended, and lets it wait to be made again for lack of
  // memory.
  void End(std::unique_ptr<Task> task);
  size_t MostTokens(const Task& task) const;

  const cli::Options& options_;
  const cli::Model& model_;
  std::optional<cli::Model> draft_;
  std::unique_ptr<cli::Options> sized_;
  std::optional<cli::Session> root_;  // holds nothing; the others are its forks
  std::list<Slot> slots_;
  size_t most_slots_ = 1;
  size_t planned_tokens_ = 0;
  int64_t context_ = 0;
  size_t parallel_ = 1;
  uint64_t uses_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // The lock guards these.
  std::deque<std::unique_ptr<Task>> waiting_;
  std::list<std::unique_ptr<Task>> running_;
  std::vector<Task*> ended_;  // some of those that run
  bool stalled_ = false;      // none begins before another ends
  bool ends_ = false;
  Id last_id_ = 0;

  std::optional<cli::Queue> queue_;  // before the sessions go
  std::thread thread_;
};

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_GENERATIONS_H_
