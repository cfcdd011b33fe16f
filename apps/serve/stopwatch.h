#ifndef TIERCEL_APPS_SERVE_STOPWATCH_H_
#define TIERCEL_APPS_SERVE_STOPWATCH_H_

#include <chrono>
#include <optional>

namespace tiercel::serve {

// The times of a generation: it begins when its prompt begins to be read.
class Stopwatch {
 public:
  void Begin() {
    if (!begin_.has_value()) begin_ = Clock::now();
  }
  void Token() {
    Begin();
    if (!first_.has_value()) first_ = Clock::now();
  }
  void End() { end_ = Clock::now(); }

  bool has_token() const { return first_.has_value(); }
  // To the first token, or to now.
  double prompt_ms() const {
    if (!begin_.has_value()) return 0;
    return Ms(first_.value_or(end_.value_or(Clock::now())) - *begin_);
  }
  double output_ms() const {
    return first_.has_value() && end_.has_value() ? Ms(*end_ - *first_) : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double Ms(Clock::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  }

  std::optional<Clock::time_point> begin_;
  std::optional<Clock::time_point> first_;
  std::optional<Clock::time_point> end_;
};

}  // namespace tiercel::serve

#endif  // TIERCEL_APPS_SERVE_STOPWATCH_H_
