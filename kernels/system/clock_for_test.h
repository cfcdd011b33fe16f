#ifndef TIERCEL_KERNELS_SYSTEM_CLOCK_FOR_TEST_H_
#define TIERCEL_KERNELS_SYSTEM_CLOCK_FOR_TEST_H_

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <utility>

#include "kernels/system/clock.h"

namespace tiercel {

// A clock that stands still unless a test lets time pass. A sleeper does not
// wait: the clock advances at once.
class ManualClock final : public Clock {
 public:
  // `at_reading` is called before each reading, and may let time pass.
  explicit ManualClock(std::function<void(ManualClock&)> at_reading = nullptr)
      : at_reading_(std::move(at_reading)) {}

  Time Now() override {
    if (at_reading_) at_reading_(*this);
    const std::lock_guard<std::mutex> lock(mutex_);
    return now_;
  }
  void SleepUntil(Time time) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    now_ = std::max(now_, time);
  }
  void Pass(double seconds) {
    const std::lock_guard<std::mutex> lock(mutex_);
    now_ += std::chrono::duration_cast<Time::duration>(
        std::chrono::duration<double>(seconds));
  }

 private:
  const std::function<void(ManualClock&)> at_reading_;
  std::mutex mutex_;
  Time now_ = Time() + std::chrono::hours(1);
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_CLOCK_FOR_TEST_H_
