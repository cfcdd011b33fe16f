#ifndef TIERCEL_RUNTIME_DRAFTING_SCHEDULE_REPORT_H_
#define TIERCEL_RUNTIME_DRAFTING_SCHEDULE_REPORT_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tiercel {

// What the schedule of a policy made of one generation.
struct ScheduleReport {
  struct Steps {
    int64_t steps = 0;
    double seconds = 0;
  };
  // Output tokens begin to end - 1, whose own rows had one mode.
  struct Segment {
    std::string_view mode;  // a literal
    int64_t begin = 0;
    int64_t end = 0;

    friend bool operator==(const Segment&, const Segment&) = default;
  };

  bool plain = false;
  Steps fast;  // over a view; where they are verified, tokens drafted over it
  int64_t fast_positions = 0;  // that one of them reads, about, at most
  Steps slow;                  // over everything
  std::vector<std::pair<std::string, int64_t>> reasons = {};  // of slow steps
  std::vector<int64_t> slow_at = {};  // output tokens there were before each
  std::vector<Segment> segments = {};
  // Positions that a head has chosen; absent: it chooses none.
  std::optional<int64_t> selected = {};
  // In each slow step one row chooses anew: the share of its attention that
  // fell on what was in view before; absent where that cannot be known.
  std::vector<std::optional<double>> coverage_at = {};

  // Output token `index`, the last so far, has a row of this mode.
  void Note(std::string_view mode, int64_t index) {
    if (segments.empty() || segments.back().mode != mode) {
      segments.push_back({.mode = mode, .begin = index, .end = index});
    }
    segments.back().end = index + 1;
  }
  // Leaves out what is of tokens after the first `count`.
  void Cut(int64_t count) {
    while (!segments.empty() && segments.back().begin >= count) {
      segments.pop_back();
    }
    if (!segments.empty() && segments.back().end > count) {
      segments.back().end = count;
    }
    while (!slow_at.empty() && slow_at.back() >= count) {
      slow_at.pop_back();
      coverage_at.resize(std::min(coverage_at.size(), slow_at.size()));
    }
  }
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_SCHEDULE_REPORT_H_
