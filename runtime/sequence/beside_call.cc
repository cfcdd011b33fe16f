#include "runtime/sequence/beside_call.h"

#include <signal.h>

#include <new>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "kernels/base/error.h"

namespace tiercel {

BesideCall::BesideCall(std::function<absl::Status()> call)
    : call_(std::move(call)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const absl::Cleanup unblock = [&] {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  };
  try {
    thread_ = std::thread([this] {
      try {
        status_ = call_();
      } catch (const std::bad_alloc&) {
        status_ =
            MemoryError("out_of_memory", "the system gave no more memory");
      }
      over_.store(true);
    });
  } catch (const std::system_error&) {
    status_ = MemoryError("no_thread", "the system gives no thread");
    over_.store(true);
  }
}

absl::Status BesideCall::Join() {
  if (thread_.joinable()) thread_.join();
  return status_;
}

}  // namespace tiercel
