#ifndef TIERCEL_KERNELS_SYSTEM_CLOCK_H_
#define TIERCEL_KERNELS_SYSTEM_CLOCK_H_

#include <chrono>

namespace tiercel {

// A clock to read and to sleep by. All measurements use one, so that a test can
// decide how long things take. Thread-safe.
class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  virtual ~Clock() = default;
  virtual Time Now() = 0;  // never decreases
  virtual void SleepUntil(Time time) = 0;
};

// The clock std::chrono::steady_clock.
Clock& SteadyClock();

inline double SecondsBetween(Clock::Time begin, Clock::Time end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_CLOCK_H_
