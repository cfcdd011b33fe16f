#ifndef TIERCEL_RUNTIME_DRAFTING_SCHEDULE_REPORT_H_
#define TIERCEL_RUNTIME_DRAFTING_SCHEDULE_REPORT_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tiercel {

// The effect of a policy's schedule on the tokens of one generation.
struct ScheduleReport {
  struct Steps {
    int64_t steps = 0;
    double seconds = 0;
  };
  // Steps of one kind, taken at one place.
  struct Taken {
    int64_t at = 0;     // number of output tokens before them
    bool slow = false;  // over everything; else over a view
    Steps steps = {};   // over a view in a verified form: tokens drafted
  };
  // Output tokens begin to end - 1, whose own rows had the same mode.
  struct Segment {
    std::string_view mode;  // a literal
    int64_t begin = 0;
    int64_t end = 0;

    friend bool operator==(const Segment&, const Segment&) = default;
  };

  bool plain = false;
  std::vector<Taken> taken = {};
  int64_t fast_positions = 0;  // most positions that a fast step reads, about
  std::vector<int64_t> slow_at = {};  // output tokens before each slow step
  std::vector<std::string_view> reason_at = {};  // literals, or empty
  std::vector<Segment> segments = {};
  // The number of positions that a head selects; absent: it selects none.
  std::optional<int64_t> selected = {};
  // In each slow step one row selects anew: the share of its attention that
  // fell on the positions in view before. Absent if it cannot be known.
  std::vector<std::optional<double>> coverage_at = {};

  // Notes that output token `index`, the last so far, has a row of this mode.
  void Note(std::string_view mode, int64_t index) {
    if (segments.empty() || segments.back().mode != mode) {
      segments.push_back({.mode = mode, .begin = index, .end = index});
    }
    segments.back().end = index + 1;
  }
  // Notes a block that was drafted over a view and checked over everything,
  // behind `at` output tokens, in so many seconds. `swept`: a sweep checked it,
  // which the first token after a prompt does not need.
  void NoteBlock(int64_t at, int64_t drafted, bool swept, double draft_seconds,
                 double verify_seconds) {
    taken.push_back({at, /*slow=*/false, {drafted, draft_seconds}});
    taken.push_back({at, /*slow=*/true, {swept ? 1 : 0, verify_seconds}});
  }

  // Returns true if a sweep checked the block that was noted last.
  bool swept() const { return taken.back().steps.steps > 0; }

  Steps fast() const { return SumOf(/*slow=*/false); }
  Steps slow() const { return SumOf(/*slow=*/true); }

  // Leaves out all that gave no token of the first `count`.
  void Cut(int64_t count) {
    while (!segments.empty() && segments.back().begin >= count) {
      segments.pop_back();
    }
    if (!segments.empty() && segments.back().end > count) {
      segments.back().end = count;
    }
    while (!taken.empty() && taken.back().at >= count) taken.pop_back();
    while (!slow_at.empty() && slow_at.back() >= count) slow_at.pop_back();
    reason_at.resize(std::min(reason_at.size(), slow_at.size()));
    coverage_at.resize(std::min(coverage_at.size(), slow_at.size()));
  }

 private:
  Steps SumOf(bool slow) const {
    Steps sum;
    for (const Taken& some : taken) {
      if (some.slow != slow) continue;
      sum.steps += some.steps.steps;
      sum.seconds += some.steps.seconds;
    }
    return sum;
  }
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_DRAFTING_SCHEDULE_REPORT_H_
