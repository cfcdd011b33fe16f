#ifndef TIERCEL_KERNELS_SYSTEM_NO_SIGNALS_H_
#define TIERCEL_KERNELS_SYSTEM_NO_SIGNALS_H_

#include <signal.h>

#include <initializer_list>

namespace tiercel {

// While it lives, neither the calling thread nor a thread that it starts takes
// the process's signals, so no handler of the program runs there. Faults of the
// thread itself still reach their handlers.
class NoSignals {
 public:
  NoSignals() {
    sigset_t held;
    sigfillset(&held);
    for (const int fault :
         {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      sigdelset(&held, fault);
    }
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_NO_SIGNALS_H_
