#ifndef TIERCEL_APPS_COMMANDS_QUEUE_H_
#define TIERCEL_APPS_COMMANDS_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/commands/model.h"
#include "apps/commands/session.h"
#include "apps/commands/watched.h"
#include "include/tiercel_queue.hpp"

// Generations that are made at once.
namespace tiercel::cli {

// A generation of a batch.
struct BatchEntry {
  Session* session;
  const std::vector<int32_t>* prompt;  // to be read first; null: none
  tiercel_sampling sampling;
  TokenFn on_token;
  // The library sets it when this generation has ended.
  tiercel_status result = not_ended;
  absl::Status status = {};  // once all have ended

  bool ended() const { return result != not_ended; }
};

// Makes them; each has a status of its own. Errors: those before any begins.
absl::Status GenerateBatch(std::vector<BatchEntry>& entries);

// Generations that come and go one by one, on a thread of the library's own.
// Sessions must outlive it.
class Queue {
 public:
  // Takes the results of a generation, on the queue's thread, and stays in its
  // place until the end. After a signal the generation ends.
  struct Results {
    std::function<void(const Token& token)> on_token;
    std::function<void(absl::Status status)> on_end;
    // Takes progress of a prompt, in tokens times layers; may be null.
    ProgressFn on_read = nullptr;
  };

  static absl::StatusOr<Queue> Create(const Model& model, size_t at_once);

  // Begins a generation behind `prompt`, which is read first, or behind the
  // tokens that `session` holds, if that is null. Until its end no other call
  // may use the session.
  absl::Status Add(Session& session, const std::vector<int32_t>* prompt,
                   const tiercel_sampling& sampling, Results* results);
  // Calls `wait`, and cancels all generations if a signal comes meanwhile.
  void CancelOnSignalIn(absl::FunctionRef<void()> wait) const;

 private:
  explicit Queue(tiercel::Queue queue) : queue_(std::move(queue)) {}

  tiercel::Queue queue_;
  std::set<tiercel_session*> sessions_;  // all that were added
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_COMMANDS_QUEUE_H_
