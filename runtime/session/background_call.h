#ifndef TIERCEL_RUNTIME_SESSION_BACKGROUND_CALL_H_
#define TIERCEL_RUNTIME_SESSION_BACKGROUND_CALL_H_

#include <atomic>
#include <functional>
#include <thread>

#include "absl/status/status.h"

namespace tiercel {

// A call that runs on a thread of its own. The thread takes none of its
// process's signals: a file that may not grow is then an error of the call, and
// no handler of the program runs there.
class BackgroundCall {
 public:
  explicit BackgroundCall(
      std::function<absl::Status()> call);  // begins the call
  ~BackgroundCall() { (void)Join(); }
  BackgroundCall(const BackgroundCall&) = delete;
  BackgroundCall& operator=(const BackgroundCall&) = delete;

  bool over() const { return over_.load(); }
  // Waits for the call to end, and returns its status. Errors: also no_thread,
  // if it could not begin; out_of_memory.
  absl::Status Join();

 private:
  std::function<absl::Status()> call_;
  absl::Status status_;  // valid once it is over
  std::atomic<bool> over_{false};
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_BACKGROUND_CALL_H_
