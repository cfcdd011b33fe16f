#ifndef TIERCEL_KERNELS_MACHINE_THREAD_H_
#define TIERCEL_KERNELS_MACHINE_THREAD_H_

#include <atomic>
#include <cfenv>
#include <memory>
#include <thread>
#include <utility>

#include "kernels/machine/no_signals.h"

namespace tiercel {

// While the calling thread lives, dlclose leaves this code in memory.
void KeepCodeForThread();

// A thread that runs `body` and then ends. All threads of the library begin
// here: they take none of the process's signals, round to nearest and flush
// nothing to zero whatever the caller does, and the library stays in memory for
// as long as one lives. Throws as std::thread does where the system gives no
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
  // Until then its first instruction could be gone.
  kept->wait(false);
  return thread;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_MACHINE_THREAD_H_
