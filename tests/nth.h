#ifndef TIERCEL_TESTS_NTH_H_
#define TIERCEL_TESTS_NTH_H_

#include <atomic>
#include <cstdint>
#include <limits>

namespace tiercel {

// A repeated event that goes wrong at the n-th time, counted from 1, or from
// then on.
class Nth {
 public:
  void Arm(int64_t n, bool from_then_on = false) {
    stays_ = from_then_on;
    happened_ = false;
    left_ = n;
  }
  void Disarm() { left_ = std::numeric_limits<int64_t>::max(); }
  bool operator()() {
    const int64_t left = --left_;
    if (left > 0 || (left < 0 && !stays_)) return false;
    happened_ = true;
    return true;
  }
  bool happened() const { return happened_; }

 private:
  std::atomic<int64_t> left_{std::numeric_limits<int64_t>::max()};
  std::atomic<bool> stays_{false};
  std::atomic<bool> happened_{false};
};

}  // namespace tiercel

#endif  // TIERCEL_TESTS_NTH_H_
