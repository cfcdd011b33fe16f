#ifndef TIERCEL_RUNTIME_SESSION_TIME_SPENT_H_
#define TIERCEL_RUNTIME_SESSION_TIME_SPENT_H_

#include <algorithm>

namespace tiercel {

// A span of time, and the part of it in which the link was busy with any copy.
// A copy counts when it ends.
struct TimeSpent {
  double seconds = 0;
  double link_seconds = 0;

  TimeSpent& operator+=(const TimeSpent& other) {
    seconds += other.seconds;
    link_seconds += other.link_seconds;
    return *this;
  }
  // The difference; 0 if rounding would make it negative.
  TimeSpent operator-(const TimeSpent& other) const {
    return {std::max(0.0, seconds - other.seconds),
            std::max(0.0, link_seconds - other.link_seconds)};
  }
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_TIME_SPENT_H_
