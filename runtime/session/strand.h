#ifndef TIERCEL_RUNTIME_SESSION_STRAND_H_
#define TIERCEL_RUNTIME_SESSION_STRAND_H_

#include <sys/types.h>

#include <exception>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>

#include "absl/status/statusor.h"

namespace tiercel {

// A function on a thread of its own that runs in turn with the thread that made
// it: at any time one of the two waits for the other, so neither needs a lock
// for what they share.
class Strand {
 public:
  // `body` begins with the first Resume. Errors: no_thread.
  static absl::StatusOr<std::unique_ptr<Strand>> Create(
      std::function<void()> body);
  // The body has ended, or has not begun, or this is another process.
  ~Strand();
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  // Lets the body run until its next Yield, or its end. Throws what the body
  // throws. In a process that was forked since, where the thread is missing,
  // this does nothing.
  void Resume();
  // Resumes a body that has begun until its end; what it throws is dropped.
  void Finish() noexcept;
  bool begun() const { return begun_; }
  // Also true in such a process.
  bool ended() const { return ended_ || IsForked(); }
  // Called by the body: waits for the next Resume.
  void Yield();

 private:
  explicit Strand(std::function<void()> body);
  void Run();
  bool IsForked() const;

  const std::function<void()> body_;
  const pid_t process_;
  bool begun_ = false;
  bool ended_ = false;
  std::exception_ptr thrown_;
  std::binary_semaphore resumed_{0};
  std::binary_semaphore yielded_{0};
  std::thread thread_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_STRAND_H_
