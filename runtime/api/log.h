#ifndef TIERCEL_RUNTIME_API_LOG_H_
#define TIERCEL_RUNTIME_API_LOG_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "include/tiercel.h"
#include "lib/c_api/callers_thread.h"

namespace tiercel {

// The program's log of a model and its sessions. Calls note sentences as they
// work, and tell them at their end, on the thread that runs callbacks.
// Thread-safe.
class Log {
 public:
  Log(tiercel_log log, void* user_data) : log_(log), user_data_(user_data) {}

  void Note(int32_t level, std::string sentence);
  // Notes the warnings that were not noted before.
  void NoteWarnings(const std::vector<std::string>& warnings);
  // Tells what was noted. An exception of the program's function is dropped.
  void Tell(CallersThread& thread);

 private:
  struct Line {
    int32_t level;
    std::string sentence;
  };
  const tiercel_log log_;
  void* const user_data_;
  std::mutex mutex_;  // guards the members below
  std::deque<Line> noted_;
  std::set<std::string> warnings_;  // all that were ever noted
};

// Ends a call with `status`: notes it if it is an error of other kind than a
// stop, and tells what was noted, which may free the handle that has the log.
// `log` may be null. Returns the status.
absl::Status Told(std::shared_ptr<Log> log, CallersThread& thread,
                  absl::Status status);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_API_LOG_H_
