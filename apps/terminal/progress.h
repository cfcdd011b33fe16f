#ifndef TIERCEL_APPS_TERMINAL_PROGRESS_H_
#define TIERCEL_APPS_TERMINAL_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace tiercel::cli {

// Called with done and total.
using ProgressFn = std::function<void(uint64_t done, uint64_t total)>;

// One line that is drawn over itself while long work runs, and gone after it:
//
//   reading 3,412 / 7,012 tokens  48%  1,893 tok/s  2 s left
struct ProgressState {
  std::string verb;      // "reading"
  std::string unit;      // "tokens"
  std::string per_unit;  // "tok/s"; empty: the rate is not shown
  int64_t done = 0;
  int64_t total = 0;
  double seconds = 0;  // since the work began
};

// The line, cut to fewer than `columns` columns: a full one would wrap. ASCII.
std::string ProgressLine(const ProgressState& state, int columns);

// Whether stderr is a terminal that can draw: not TERM=dumb. NO_COLOR is about
// colour, of which the line has none.
bool TerminalDraws();

class Progress {
 public:
  // Draws nothing where `wanted` is false or the terminal does not draw.
  Progress(bool wanted, std::string verb, std::string unit,
           std::string per_unit);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws ten times a second at most; empty where
  // nothing is drawn.
  ProgressFn Callback();
  // Counts in another unit, `units` of which are the library's total.
  ProgressFn Callback(int64_t units);
  // Draws at once: the next call may be long in coming.
  void Show(int64_t done, int64_t total);

 private:
  void Draw(int64_t done, int64_t total);

  using Clock = std::chrono::steady_clock;
  const bool draws_;
  ProgressState state_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point drawn_at_ = begin_;
  bool on_screen_ = false;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_PROGRESS_H_
