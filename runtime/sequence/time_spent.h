#ifndef TIERCEL_RUNTIME_SEQUENCE_TIME_SPENT_H_
#define TIERCEL_RUNTIME_SEQUENCE_TIME_SPENT_H_

#include <algorithm>

namespace tiercel {

// Time, and how much of it the link was occupied, by whatever was on it. A copy
// counts when it ends.
struct TimeSpent {
  double seconds = 0;
  double link_seconds = 0;

  TimeSpent& operator+=(const TimeSpent& other) {
    seconds += other.seconds;
    link_seconds += other.link_seconds;
    return *this;
  }
  // The rest: where rounding would leave less than nothing, nothing.
  TimeSpent operator-(const TimeSpent& other) const {
    return {std::max(0.0, seconds - other.seconds),
            std::max(0.0, link_seconds - other.link_seconds)};
  }
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_TIME_SPENT_H_
