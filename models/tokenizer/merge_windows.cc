#include "models/tokenizer/merge_windows.h"

#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr Symbol kNone = {0, 0, kNoToken};

// Returns the last token of the window that begins at `begin` whose bytes all
// lie before `end`; never the window's first token.
Symbol LastBefore(const Merger& merger, size_t begin, size_t end) {
  Symbol last = kNone;
  merger.ForEach([&](const Symbol& symbol) {
    if (symbol.begin > begin && symbol.begin + symbol.bytes <= end) {
      last = symbol;
    }
  });
  return last;
}

}  // namespace

absl::Status MergeInWindows(
    size_t size, Merger* merger,
    absl::FunctionRef<absl::Status(size_t begin, size_t end)> fill,
    absl::FunctionRef<void()> restart,
    absl::FunctionRef<absl::Status(const Symbol&)> take,
    absl::FunctionRef<absl::Status(size_t end)> look, size_t window) {
  Symbol shared = kNone;  // in the window before, and to begin the next
  for (size_t begin = 0; begin < size;) {
    const bool is_last = size - begin <= window;
    const size_t end = is_last ? size : begin + window;
    RETURN_IF_ERROR(fill(begin, end));
    const bool agrees = shared == kNone || merger->first() == shared;
    shared = is_last ? kNone : LastBefore(*merger, begin, end - window / 16);
    if (!agrees || (!is_last && shared == kNone)) {
      restart();
      window *= 2;
      begin = 0;
      shared = kNone;
      continue;
    }
    const size_t next = is_last ? size : shared.begin;
    absl::Status taken;
    merger->ForEach([&](const Symbol& symbol) {
      if (symbol.begin < next && taken.ok()) taken = take(symbol);
    });
    if (!taken.ok()) return taken;
    RETURN_IF_ERROR(look(next));
    begin = next;
  }
  return absl::OkStatus();
}

}  // namespace tiercel
