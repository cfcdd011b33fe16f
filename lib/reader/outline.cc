#include "lib/reader/outline.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "lib/reader/text.h"

namespace tiercel::reader {
namespace {

// Returns the value of a Roman numeral in the spelling of chapter numbers;
// nothing for other texts and unusual spellings ("IIII").
std::optional<int64_t> Roman(std::string_view text) {
  static constexpr struct {
    std::string_view letters;
    int value;
  } kSteps[] = {{"M", 1000}, {"CM", 900}, {"D", 500}, {"CD", 400}, {"C", 100},
                {"XC", 90},  {"L", 50},   {"XL", 40}, {"X", 10},   {"IX", 9},
                {"V", 5},    {"IV", 4},   {"I", 1}};
  int64_t value = 0;
  int repeated = 0;
  for (const auto& step : kSteps) {
    const int most = step.letters.size() == 1 && step.letters != "V" &&
                             step.letters != "L" && step.letters != "D"
                         ? 3
                         : 1;
    for (repeated = 0;
         repeated < most && text.substr(0, step.letters.size()) == step.letters;
         ++repeated) {
      value += step.value;
      text.remove_prefix(step.letters.size());
    }
  }
  if (!text.empty() || value == 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> DecimalNumber(std::string_view text) {
  constexpr size_t kMostDigits = 9;
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return value;
}

size_t SectionEnd(const Document& book, size_t index) {
  const std::vector<Section>& all = book.sections;
  for (size_t i = index + 1; i < all.size(); ++i) {
    if (all[i].level <= all[index].level) return all[i].begin;
  }
  return book.text.size();
}

std::optional<int64_t> NumberOf(const Section& section) {
  std::string label = OneLine(section.label);
  while (!label.empty() &&
         (label.back() == '.' || label.back() == ':' || label.back() == ')')) {
    label.pop_back();
  }
  const size_t space = label.rfind(' ');
  const std::string_view last = std::string_view(label).substr(
      space == std::string::npos ? 0 : space + 1);
  const std::optional<int64_t> number = DecimalNumber(last);
  return number.has_value() ? number : Roman(last);
}

std::string NameOf(const Section& section) {
  const std::string label = OneLine(section.label);
  const std::string title = OneLine(section.title);
  if (label.empty()) return title.empty() ? "(no title)" : title;
  return title.empty() ? label : label + " " + title;
}

std::string TitleOf(const Section& section) {
  const std::string title = OneLine(section.title);
  return title.empty() ? NameOf(section) : title;
}

int ChapterLevel(const Document& book) {
  struct Count {
    size_t sections = 0;
    size_t numbers = 0;
  };
  std::map<int, Count> levels;
  for (const Section& section : book.sections) {
    Count& count = levels[section.level];
    ++count.sections;
    if (NumberOf(section).has_value()) ++count.numbers;
  }
  if (levels.empty()) return 0;
  // The first of equal levels is taken: the upper one.
  const auto most = std::max_element(
      levels.begin(), levels.end(), [](const auto& a, const auto& b) {
        return a.second.numbers < b.second.numbers;
      });
  if (most->second.numbers > 0) return most->first;
  const auto divides =
      std::find_if(levels.begin(), levels.end(),
                   [](const auto& level) { return level.second.sections > 1; });
  return divides == levels.end() ? levels.begin()->first : divides->first;
}

std::vector<Chapter> ChaptersOf(const Document& book) {
  std::vector<Chapter> chapters;
  const std::vector<Section>& all = book.sections;
  if (book.chapters.has_value()) {
    for (const auto& [section, number] : *book.chapters) {
      chapters.push_back(
          {section, all[section].begin, SectionEnd(book, section), number});
    }
    return chapters;
  }
  const int level = ChapterLevel(book);
  for (size_t i = 0; i < all.size(); ++i) {
    const bool divided = i + 1 < all.size() && all[i + 1].level > all[i].level;
    if (all[i].level > level || (all[i].level < level && divided)) continue;
    chapters.push_back({i, all[i].begin, SectionEnd(book, i), std::nullopt});
  }
  int64_t last = -1;
  bool go_up = true;
  for (Chapter& chapter : chapters) {
    if (all[chapter.section].level != level) continue;
    chapter.number = NumberOf(all[chapter.section]);
    if (!chapter.number.has_value()) continue;
    go_up = go_up && *chapter.number > last;
    last = *chapter.number;
  }
  if (go_up && last >= 0) return chapters;
  for (size_t i = 0; i < chapters.size(); ++i) {
    chapters[i].number = static_cast<int64_t>(i + 1);
  }
  return chapters;
}

std::string PageAt(const Document& book, size_t offset) {
  const auto after = std::upper_bound(
      book.pages.begin(), book.pages.end(), offset,
      [](size_t at, const Page& page) { return at < page.begin; });
  return after == book.pages.begin() ? "" : std::prev(after)->number;
}

}  // namespace tiercel::reader
