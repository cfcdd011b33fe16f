#ifndef TIERCEL_OFFLOAD_RANKS_NO_HANG_FOR_TEST_H_
#define TIERCEL_OFFLOAD_RANKS_NO_HANG_FOR_TEST_H_

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace tiercel {

// Ends the program with a message when a test takes far longer than it ever
// should: ranks that wait for each other for ever would print nothing.
class NoHang {
 public:
  NoHang() : watch_([this] { Watch(); }) {}
  ~NoHang() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    watch_.join();
  }

 private:
  // It counts moments instead of reading a clock: none pass while the machine
  // is suspended.
  void Watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (int moments = 0; moments < 1200; ++moments) {
      if (changed_.wait_for(lock, std::chrono::milliseconds(100),
                            [this] { return over_; })) {
        return;
      }
    }
    std::fputs("a rank waits for another for ever\n", stderr);
    std::_Exit(1);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread watch_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RANKS_NO_HANG_FOR_TEST_H_
