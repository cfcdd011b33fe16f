#ifndef TIERCEL_RUNTIME_SESSION_CANCELLATION_H_
#define TIERCEL_RUNTIME_SESSION_CANCELLATION_H_

#include <atomic>

namespace tiercel {

// A request to stop, from any thread, which holds until it is cleared.
class Cancellation {
 public:
  // Async-signal-safe.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void Clear() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const {
    return cancelled_.load(std::memory_order_relaxed) ||
           (whole_ != nullptr && whole_->cancelled());
  }
  // From now on a request to stop `whole`, which outlives this, counts here
  // too.
  void Follow(const Cancellation& whole) { whole_ = &whole; }

 private:
  std::atomic<bool> cancelled_{false};
  const Cancellation* whole_ = nullptr;  // null: none
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_CANCELLATION_H_
