#include "kernels/system/clock.h"

#include <thread>

namespace tiercel {
namespace {

class Steady final : public Clock {
 public:
  Time Now() override { return std::chrono::steady_clock::now(); }
  void SleepUntil(Time time) override { std::this_thread::sleep_until(time); }
};

}  // namespace

Clock& SteadyClock() {
  static Steady clock;
  return clock;
}

}  // namespace tiercel
