#ifndef TIERCEL_APPS_TERMINAL_PROGRESS_H_
#define TIERCEL_APPS_TERMINAL_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace tiercel::cli {

// Called with done and total.
using ProgressFn = std::function<void(uint64_t done, uint64_t total)>;

// The status line while long work runs:
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
  std::string title;   // "Loomings", of the part; empty: it has none
};

// The line, shorter than `columns` columns: a full one would wrap. Where it is
// too long for that, what matters least is left out first: the rate, then the
// counts, some of the title, all of it, the verb, and the part. The time that
// is left stays.
std::string ProgressLine(const ProgressState& state, int columns);

class Progress {
 public:
  // Draws nothing where `wanted` is false or the terminal does not draw.
  Progress(bool wanted, std::string verb, std::string unit,
           std::string per_unit);
  ~Progress();  // takes the line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws ten times a second at most; empty where
  // nothing is drawn.
  ProgressFn Callback();
  // Counts in another unit, `units` of which are the library's total.
  ProgressFn Callback(int64_t units);
  // Draws at once: the next call may be long in coming.
  void Show(int64_t done, int64_t total);
  // From here on the line speaks of this part, or says this verb; it is drawn
  // at once.
  void SetPart(std::string part, std::string title, std::string verb);
  void SetVerb(std::string verb);
  // Writes a note above the line; nothing where nothing is drawn.
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
