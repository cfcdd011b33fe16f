#ifndef TIERCEL_KERNELS_SYSTEM_THREAD_H_
#define TIERCEL_KERNELS_SYSTEM_THREAD_H_

#include <atomic>
#include <cfenv>
#include <memory>
#include <thread>
#include <utility>

#include "kernels/system/no_signals.h"

namespace tiercel {

// While the calling thread lives, dlclose leaves this code in memory.
void KeepCodeForThread();

// Starts a thread that runs `body` and then ends. All threads of the library
// are started here: they take none of the process's signals, round to nearest
// and do not flush to zero whatever the caller does, and the library stays in
// memory while one lives. Throws as std::thread does if the system refuses a
// thread.
template <typename Body>
std::thread StartThread(Body body) {
  const NoSignals no_signals;
  const auto kept = std::make_shared<std::atomic<bool>>(false);
  std::thread thread([kept, body = std::move(body)]() mutable {
    KeepCodeForThread();
    kept->store(true);
    kept->notify_one();
    std::fesetenv(FE_DFL_ENV);
    body();
  });
  // Before this the module with the thread's first instruction could be
  // unloaded.
  kept->wait(false);
  return thread;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_THREAD_H_
