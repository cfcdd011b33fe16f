#ifndef TIERCEL_KERNELS_SYSTEM_SIGNALS_FOR_TEST_H_
#define TIERCEL_KERNELS_SYSTEM_SIGNALS_FOR_TEST_H_

#include <signal.h>

#include <initializer_list>

namespace tiercel {

// Returns true if a handler of the program may run on the calling thread for a
// signal that is sent to the process.
inline bool TakesSignals() {
  sigset_t held;
  pthread_sigmask(SIG_BLOCK, nullptr, &held);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    // Two signals cannot be blocked, the C library reserves two, and some are
    // faults.
    const bool never = signal == SIGKILL || signal == SIGSTOP ||
                       (signal > SIGSYS && signal < SIGRTMIN);
    const bool fault = signal == SIGSEGV || signal == SIGBUS ||
                       signal == SIGFPE || signal == SIGILL ||
                       signal == SIGTRAP || signal == SIGSYS ||
                       signal == SIGABRT;
    if (!never && !fault && sigismember(&held, signal) == 0) return true;
  }
  return false;
}

// Returns true if a handler of the program may run on the calling thread for
// the thread's own faults.
inline bool TakesFaults() {
  sigset_t held;
  pthread_sigmask(SIG_BLOCK, nullptr, &held);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    if (sigismember(&held, fault) != 0) return false;
  }
  return true;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_SIGNALS_FOR_TEST_H_
