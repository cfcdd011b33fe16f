#include "runtime/session/background_call.h"

#include <new>
#include <system_error>
#include <utility>

#include "kernels/system/thread.h"
#include "lib/status/error.h"

namespace tiercel {

BackgroundCall::BackgroundCall(std::function<absl::Status()> call)
    : call_(std::move(call)) {
  try {
    // A status takes memory too, so this one is made before.
    thread_ = StartThread(
        [this, lacks_memory = MemoryError("out_of_memory",
                                          "the system gave no more memory")] {
          try {
            status_ = call_();
          } catch (const std::bad_alloc&) {
            status_ = lacks_memory;
          }
          over_.store(true);
        });
  } catch (const std::system_error&) {
    status_ = MemoryError("no_thread", "the system gives no thread");
    over_.store(true);
  }
}

absl::Status BackgroundCall::Join() {
  if (thread_.joinable()) thread_.join();
  return status_;
}

}  // namespace tiercel
