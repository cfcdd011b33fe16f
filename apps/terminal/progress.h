#ifndef TIERCEL_APPS_TERMINAL_PROGRESS_H_
#define TIERCEL_APPS_TERMINAL_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace tiercel::cli {

// A callback that takes the amounts done and in total.
using ProgressFn = std::function<void(uint64_t done, uint64_t total)>;

// The state of the status line that shows while long work runs:
//
//   part 3 of 48, Loomings: reading 3,412 / 7,012 tokens  48%  1,893 tok/s  2 s
//   left
struct ProgressState {
  std::string verb;      // "reading"
  std::string unit;      // "tokens"
  std::string per_unit;  // "tok/s"; empty: the rate is not shown
  int64_t done = 0;
  int64_t total = 0;
  double seconds = 0;  // since the work began
  std::string part;    // "part 3 of 48"; empty: it has none
  std::string title;   // title of the part, "Loomings"; empty: it has none
};

// Returns the line, shorter than `columns` columns, since a full one would
// wrap. Where it is too long, it leaves out the rate, then the counts, some of
// the title, all of it, the verb, and the part. The time that is left stays.
std::string ProgressLine(const ProgressState& state, int columns);

class Progress {
 public:
  // Draws nothing where `wanted` is false or the terminal does not draw.
  Progress(bool wanted, std::string verb, std::string unit,
           std::string per_unit);
  ~Progress();  // erases the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Returns a callback that draws ten times a second at most; empty if nothing
  // is drawn.
  ProgressFn Callback();
  // Returns a callback that counts in another unit: `units` of it are the
  // library's total.
  ProgressFn Callback(int64_t units);
  // Draws at once, since the next call may take long to come.
  void Show(int64_t done, int64_t total);
  // Set the part, or the verb, of the line from here on, and draw it at once.
  void SetPart(std::string part, std::string title, std::string verb);
  void SetVerb(std::string verb);
  // Writes a note above the line; does nothing if nothing is drawn.
  void Say(const std::string& note);

 private:
  void Draw(int64_t done, int64_t total);

  using Clock = std::chrono::steady_clock;
  const bool draws_;
  ProgressState state_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point drawn_at_ = begin_;
};

}  // namespace tiercel::cli

#endif  // TIERCEL_APPS_TERMINAL_PROGRESS_H_
