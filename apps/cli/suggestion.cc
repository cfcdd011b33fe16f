#include "apps/cli/suggestion.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tiercel::cli {
namespace {

// The optimal string alignment distance, a row at a time.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Suggestion(std::string_view typed,
                       const std::vector<std::string>& known) {
  size_t least = std::clamp<size_t>(typed.size() / 3, 1, 3) + 1;
  const std::string* nearest = nullptr;
  constexpr size_t kBeginning = 4;
  for (const std::string& word : known) {
    const bool begins =
        typed.size() >= kBeginning && word.compare(0, typed.size(), typed) == 0;
    const size_t distance = begins ? 0 : Distance(typed, word);
    if (distance >= least) continue;
    least = distance;
    nearest = &word;
  }
  return nearest == nullptr ? ""
                            : absl::StrCat("; did you mean ", *nearest, "?");
}

}  // namespace tiercel::cli
