#ifndef TIERCEL_KERNELS_MACHINE_SIGNALS_FOR_TEST_H_
#define TIERCEL_KERNELS_MACHINE_SIGNALS_FOR_TEST_H_

#include <signal.h>

#include <initializer_list>

namespace tiercel {

// Whether a handler of the program may run on the calling thread for a signal
// that somebody sends.
inline bool TakesSignals() {
  sigset_t held;
  pthread_sigmask(SIG_BLOCK, nullptr, &held);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    // Two of these nobody holds, the C library has two for itself, and the
    // rest are faults.
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

// Whether a handler of the program may run on the calling thread for what the
// thread does itself.
inline bool TakesFaults() {
  sigset_t held;
  pthread_sigmask(SIG_BLOCK, nullptr, &held);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    if (sigismember(&held, fault) != 0) return false;
  }
  return true;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_SIGNALS_FOR_TEST_H_
