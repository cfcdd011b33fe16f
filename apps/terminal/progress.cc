#include "apps/terminal/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/numbers.h"
#include "apps/terminal/output.h"

namespace tiercel::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenDraws(100);
constexpr double kSecondsBeforeRate = 0.5;  // an earlier one is noise
constexpr int kUsualColumns = 80;
// Back to the first column, and clear to the end.
constexpr std::string_view kClearLine = "\r\x1b[K";

// As it is now: the window may be resized while we draw.
int Columns() {
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    const std::optional<int64_t> number = ParseInt(columns);
    if (number.has_value() && *number > 0 && *number < 10'000) {
      return static_cast<int>(*number);
    }
  }
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  return kUsualColumns;
}

}  // namespace

std::string ProgressLine(const ProgressState& state, int columns) {
  std::string line = absl::StrCat(state.verb, " ", Grouped(state.done), " / ",
                                  Grouped(state.total), " ", state.unit);
  if (state.total > 0) {
    absl::StrAppend(&line, "  ", 100 * state.done / state.total, "%");
  }
  if (state.done > 0 && state.seconds >= kSecondsBeforeRate) {
    const double rate = static_cast<double>(state.done) / state.seconds;
    const double left = static_cast<double>(state.total - state.done) / rate;
    if (!state.per_unit.empty()) {
      absl::StrAppend(&line, "  ", Grouped(static_cast<int64_t>(rate)), " ",
                      state.per_unit);
    }
    absl::StrAppend(&line, "  ", Duration(left), " left");
  }
  return line.substr(0, static_cast<size_t>(std::max(columns - 1, 0)));
}

bool TerminalDraws() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr &&
         std::strcmp(term, "dumb") != 0;
}

Progress::Progress(bool wanted, std::string verb, std::string unit,
                   std::string per_unit)
    : draws_(wanted && TerminalDraws()) {
  state_.verb = std::move(verb);
  state_.unit = std::move(unit);
  state_.per_unit = std::move(per_unit);
}

Progress::~Progress() {
  if (on_screen_) WriteNote(kClearLine);
}

ProgressFn Progress::Callback() {
  if (!draws_) return nullptr;
  return [this](uint64_t done, uint64_t total) {
    Draw(static_cast<int64_t>(done), static_cast<int64_t>(total));
  };
}

ProgressFn Progress::Callback(int64_t units) {
  if (!draws_) return nullptr;
  return [this, units](uint64_t done, uint64_t total) {
    const double fraction =
        total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
    Draw(static_cast<int64_t>(fraction * static_cast<double>(units)), units);
  };
}

void Progress::Draw(int64_t done, int64_t total) {
  if (Clock::now() - drawn_at_ >= kBetweenDraws) Show(done, total);
}

void Progress::Show(int64_t done, int64_t total) {
  if (!draws_) return;
  const Clock::time_point now = Clock::now();
  drawn_at_ = now;
  on_screen_ = true;
  state_.done = done;
  state_.total = total;
  state_.seconds = std::chrono::duration<double>(now - begin_).count();
  WriteNote(std::string(kClearLine) + ProgressLine(state_, Columns()));
}

}  // namespace tiercel::cli
