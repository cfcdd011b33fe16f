#ifndef TIERCEL_KERNELS_MACHINE_NO_SIGNALS_H_
#define TIERCEL_KERNELS_MACHINE_NO_SIGNALS_H_

#include <signal.h>

namespace tiercel {

// Threads that are made while it lives take none of the process's signals: no
// handler of the program runs on them.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_NO_SIGNALS_H_
