#ifndef TIERCEL_LIB_C_API_CALLERS_THREAD_H_
#define TIERCEL_LIB_C_API_CALLERS_THREAD_H_

#include <cfenv>

namespace tiercel {

// Prepares the calling thread for the library. While this lives, the program's
// settings of the thread are put aside; afterwards they are restored:
//
//   arithmetic      round to nearest, no traps, no flushing to zero, on this
//                   thread and on those it starts
//   SIGXFSZ         a file that may not grow is an error (EFBIG), and no signal
//                   is left of it
//   cancellation    pthread_cancel waits until the call is over
class CallersThread {
 public:
  CallersThread();
  ~CallersThread();
  CallersThread(const CallersThread&) = delete;
  CallersThread& operator=(const CallersThread&) = delete;

  // Calls a callback of the program, with the signal and cancellation as the
  // program has them. Returns true if the call may go on, also if the callback
  // is null. Undoes any change of the callback to the thread's arithmetic, even
  // if it throws or ends the thread.
  template <typename Callback, typename... Args>
  bool GoesOn(Callback* callback, Args... args) {
    return callback == nullptr || Call(callback, args...) == 0;
  }
  // Calls one that is not null, and returns what it returns.
  template <typename Callback, typename... Args>
  auto Call(Callback* callback, Args... args) {
    const Outside outside(*this);
    return callback(args...);
  }

 private:
  class Outside {
   public:
    explicit Outside(CallersThread& thread) : thread_(thread) {
      thread_.Leave();
    }
    ~Outside() { thread_.Enter(); }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

   private:
    CallersThread& thread_;
  };

  void Enter();
  // Restores all but the arithmetic, which in callbacks is the library's.
  void Leave();

  std::fenv_t arithmetic_;
  int cancellation_ = 0;
  bool signal_was_held_ = false;
  bool signal_was_pending_ = false;
};

}  // namespace tiercel

#endif  // TIERCEL_LIB_C_API_CALLERS_THREAD_H_
