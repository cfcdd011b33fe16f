#include "runtime/api/callers_thread.h"

#include <pthread.h>

namespace tiercel {

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
  std::fesetenv(FE_DFL_ENV);
}

void CallersThread::Leave() {
  pthread_setcancelstate(cancellation_, /*oldstate=*/nullptr);
}

}  // namespace tiercel
