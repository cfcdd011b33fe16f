#include "apps/terminal/progress.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/cli/numbers.h"
#include "apps/terminal/output.h"
#include "apps/terminal/printable.h"
#include "apps/terminal/screen.h"

namespace tiercel::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenDraws(100);
constexpr double kSecondsBeforeRate = 0.5;  // an earlier rate is noise
constexpr int kUsualColumns = 80;
constexpr int kLeastTitleColumns = 8;

// The longest beginning of `text` that fits in `columns` columns.
std::string CutTo(std::string_view text, int columns) {
  size_t at = 0;
  while (at < text.size()) {
    const TerminalCharacter character = CharacterAt(text, at);
    columns -= character.is_safe ? character.columns : 1;
    if (columns < 0) break;
    at += character.bytes;
  }
  return std::string(text.substr(0, at));
}

// The parts of the line; not all of them are shown.
struct Fields {
  std::string part;
  std::string title;
  std::string verb;
  std::string counts;
  std::string share;
  std::string rate;
  std::string left;

  std::string Joined() const {
    std::string line = part;
    if (!title.empty()) absl::StrAppend(&line, ", ", title);
    const auto add = [&](const char* between, const std::string& field) {
      if (field.empty()) return;
      absl::StrAppend(&line, line.empty() ? "" : between, field);
    };
    add(": ", verb);
    add(" ", counts);
    add("  ", share);
    add("  ", rate);
    add("  ", left);
    return line;
  }
};

Fields FieldsOf(const ProgressState& state) {
  Fields fields;
  fields.part = state.part;
  fields.title = state.title;
  fields.verb = state.verb;
  fields.counts = absl::StrCat(Grouped(state.done), " / ", Grouped(state.total),
                               " ", state.unit);
  if (state.total > 0) {
    fields.share = absl::StrCat(100 * state.done / state.total, "%");
  }
  if (state.done > 0 && state.seconds >= kSecondsBeforeRate) {
    const double rate = static_cast<double>(state.done) / state.seconds;
    const double left = static_cast<double>(state.total - state.done) / rate;
    if (!state.per_unit.empty()) {
      fields.rate = absl::StrCat(Grouped(static_cast<int64_t>(rate)), " ",
                                 state.per_unit);
    }
    fields.left = Duration(left) + " left";
  }
  return fields;
}

}  // namespace

std::string ProgressLine(const ProgressState& state, int columns) {
  const int most = std::max(columns - 1, 0);
  Fields fields = FieldsOf(state);
  const auto columns_of = [](const std::string& text) {
    return static_cast<int>(ColumnsOf(text));
  };
  const auto fits = [&] { return columns_of(fields.Joined()) <= most; };
  if (!fits()) fields.rate.clear();
  if (!fits() && !(fields.part.empty() && fields.left.empty())) {
    fields.counts.clear();
  }
  if (!fits() && !fields.title.empty()) {
    const int over = columns_of(fields.Joined()) - most;
    const int room = columns_of(fields.title) - over - 3;
    fields.title =
        room < kLeastTitleColumns ? "" : CutTo(fields.title, room) + "...";
  }
  if (!fields.left.empty()) {
    for (std::string* field : {&fields.verb, &fields.part, &fields.share}) {
      if (!fits()) field->clear();
    }
  }
  return CutTo(fields.Joined(), most);
}

Progress::Progress(bool wanted, std::string verb, std::string unit,
                   std::string per_unit)
    : draws_(wanted && TerminalDraws()) {
  state_.verb = std::move(verb);
  state_.unit = std::move(unit);
  state_.per_unit = std::move(per_unit);
}

Progress::~Progress() {
  if (draws_) ShowStatus("");
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

void Progress::SetPart(std::string part, std::string title, std::string verb) {
  state_.part = std::move(part);
  state_.title = std::move(title);
  SetVerb(std::move(verb));
}

void Progress::SetVerb(std::string verb) {
  state_.verb = std::move(verb);
  Show(state_.done, state_.total);
}

void Progress::Say(const std::string& note) {
  if (draws_) WriteNote(note);
}

void Progress::Draw(int64_t done, int64_t total) {
  if (Clock::now() - drawn_at_ >= kBetweenDraws) Show(done, total);
}

void Progress::Show(int64_t done, int64_t total) {
  if (!draws_) return;
  const Clock::time_point now = Clock::now();
  drawn_at_ = now;
  state_.done = done;
  state_.total = total;
  state_.seconds = std::chrono::duration<double>(now - begin_).count();
  const int columns = NoteColumns();
  ShowStatus(ProgressLine(state_, columns > 0 ? columns : kUsualColumns));
}

}  // namespace tiercel::cli
