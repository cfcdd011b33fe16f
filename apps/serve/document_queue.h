#ifndef TIERCEL_APPS_SERVE_DOCUMENT_QUEUE_H_
#define TIERCEL_APPS_SERVE_DOCUMENT_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace tiercel::serve {

// Reads documents that clients send, in memory, one after the other on a thread
// of its own: the limits of lib/documents bound the memory and the time that
// one takes, and no other request waits for it. Nothing stays of a document.
//
// Thread-safe. Callbacks must not wait.
class DocumentQueue {
 public:
  struct Job {
    std::string name;  // its extension counts
    std::string bytes;
    // Gets the document as `tiercel text --json` writes it. Errors: those of
    // BookIn; interrupted, for one that was cancelled; out_of_memory. It is
    // called once, on some thread.
    std::function<void(const absl::StatusOr<std::string>& json)> on_end;
  };
  using Id = uint64_t;

  explicit DocumentQueue(size_t most_waiting);
  // Cancels what waits, and waits for the document that is read.
  ~DocumentQueue();
  DocumentQueue(const DocumentQueue&) = delete;
  DocumentQueue& operator=(const DocumentQueue&) = delete;

  // Absent: as many wait as may.
  std::optional<Id> Add(Job job);
  // Ends a document that waits, at once. One that is read ends by itself.
  void Cancel(Id id);
  void CancelAll();

 private:
  struct Entry {
    Id id;
    Job job;
  };
  void Work();

  const size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // The lock guards these.
  std::deque<Entry> waiting_;
  Id last_id_ = 0;
  bool ends_ = false;

  std::thread thread_;
};

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_DOCUMENT_QUEUE_H_
