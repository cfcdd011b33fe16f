#ifndef TIERCEL_KERNELS_SYSTEM_SPIN_H_
#define TIERCEL_KERNELS_SYSTEM_SPIN_H_

#include <chrono>

namespace tiercel {

// The polls of a thread that waits for a few microseconds as a rule, and should
// sleep if it takes longer. They are limited by time, as one pause takes 40
// cycles on some CPUs and 140 on others.
//
//   for (Spin spin(most); !is_there();) {
//     if (!spin.Again()) sleep();
//   }
class Spin {
 public:
  explicit Spin(std::chrono::nanoseconds most) : most_(most) {}

  // Pauses, and returns true until `most` is over; then, or if that is 0, false
  // at once.
  bool Again() {
    if (most_.count() == 0) return false;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    // A look at the clock takes about as long as a pause.
    if (++pauses_ % kPausesPerLook != 0) return true;
    const auto now = std::chrono::steady_clock::now();
    if (pauses_ == kPausesPerLook) {
      began_ = now;
    } else if (now - began_ >= most_) {
      most_ = {};
    }
    return true;
  }

 private:
  static constexpr int kPausesPerLook = 16;

  std::chrono::nanoseconds most_;
  std::chrono::steady_clock::time_point began_;
  int pauses_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_SYSTEM_SPIN_H_
