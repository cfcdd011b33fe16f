#include "lib/c_api/callers_thread.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cerrno>

namespace tiercel {
namespace {

sigset_t FileSizeSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

}  // namespace

CallersThread::CallersThread() {
  std::fegetenv(&arithmetic_);
  Enter();
}

CallersThread::~CallersThread() {
  Leave();
  std::fesetenv(&arithmetic_);
}

void CallersThread::Enter() {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation_);
  const sigset_t signal = FileSizeSignal();
  sigset_t held;
  pthread_sigmask(SIG_BLOCK, &signal, &held);
  signal_was_held_ = sigismember(&held, SIGXFSZ) == 1;
  signal_was_pending_ = false;
  if (signal_was_held_) {
    sigset_t pending;
    sigpending(&pending);
    signal_was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
  }
  std::fesetenv(FE_DFL_ENV);
}

void CallersThread::Leave() {
  const sigset_t signal = FileSizeSignal();
  if (!signal_was_pending_) {
    const timespec at_once = {};
    while (sigtimedwait(&signal, /*info=*/nullptr, &at_once) == SIGXFSZ ||
           errno == EINTR) {
    }
  }
  if (!signal_was_held_) pthread_sigmask(SIG_UNBLOCK, &signal, nullptr);
  pthread_setcancelstate(cancellation_, /*oldstate=*/nullptr);
}

}  // namespace tiercel
