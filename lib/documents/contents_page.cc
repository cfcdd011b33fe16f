#include "lib/documents/contents_page.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lib/documents/labels.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// A table of contents begins within these lines, and has at most these entries.
constexpr size_t kMaxLinesBefore = 2000;
constexpr size_t kMaxEntries = 2000;
constexpr int kMaxTitles = 4;  // lines that may be its title

// Returns an entry without the page number at its end and the leader before it.
std::string_view WithoutPageNumber(std::string_view entry) {
  const size_t number = entry.find_last_of(" .\t") + 1;
  if (number == 0 || number >= entry.size()) return entry;
  const size_t words = entry.find_last_not_of(" .\t", number - 1);
  if (words == std::string_view::npos || NumberOf(entry.substr(number)) == 0) {
    return entry;
  }
  // "Act 5" has a number and no leader, "3.2. mc" has a title.
  const std::string_view leader = entry.substr(words + 1, number - words - 1);
  const bool is_led = leader.size() > 1 && leader != ". ";
  return is_led ? entry.substr(0, words + 1) : entry;
}

// Returns true if prose begins at line i: a block of full lines.
bool IsProse(const std::vector<TextLine>& lines, size_t i) {
  if (ColumnsOf(lines[i].text) > kMaxHeadingColumns) return true;
  if (!lines[i].is_first || lines[i].num_lines < 4) return false;
  return ColumnsOf(lines[i].text) > 55 && ColumnsOf(lines[i + 1].text) > 55 &&
         ColumnsOf(lines[i + 2].text) > 55;
}

// The keys by which an entry is matched to its heading: the whole text, or the
// title alone where the two differ in their labels ("1." and "Chapter 1") or
// one of them has none.
struct EntryKeys {
  std::string all;
  std::string title;
  bool has_label;
};

EntryKeys KeysOf(std::string_view entry) {
  // "A. Manifesto" may be "Appendix A. Manifesto" in the text.
  const bool has_letter = entry.size() > 3 && entry[0] >= 'A' &&
                          entry[0] <= 'Z' && entry.substr(1, 2) == ". ";
  const Label label = SplitLabel(entry);
  const bool is_lettered = has_letter && label.rank == Rank::kNone;
  return {HeadingKey(entry),
          HeadingKey(is_lettered ? entry.substr(3) : label.title),
          is_lettered || label.rank != Rank::kNone};
}

std::vector<EntryKeys> EntriesAt(const std::vector<TextLine>& lines,
                                 size_t first, size_t* end) {
  std::vector<EntryKeys> entries;
  std::vector<size_t> entry_lines;
  size_t i = first;
  for (; i < lines.size() && entries.size() < kMaxEntries; ++i) {
    if (IsProse(lines, i)) break;
    EntryKeys keys = KeysOf(WithoutPageNumber(lines[i].text));
    // The table ends where its first entry comes again: the first chapter
    // itself.
    if (!entries.empty() &&
        (keys.all == entries.front().all ||
         (!keys.title.empty() && keys.title == entries.front().title))) {
      // Its label may stand on the line before.
      const EntryKeys& last = entries.back();
      if (entries.size() > 1 && last.has_label && last.title.empty() &&
          entries.front().all == last.all + entries.front().title) {
        i = entry_lines.back();
        entries.pop_back();
        entry_lines.pop_back();
      }
      break;
    }
    if (keys.all.empty()) continue;
    entries.push_back(std::move(keys));
    entry_lines.push_back(i);
  }
  *end = i;
  // If the first entry is no chapter, the table ends at a later one: a few of
  // its last entries come again right before the prose.
  for (size_t n = 0; n < kMaxHeadingLines && entries.size() > 1; ++n) {
    const auto again = std::find_if(
        entries.begin(), entries.end() - 1,
        [&](const EntryKeys& keys) { return keys.all == entries.back().all; });
    if (again == entries.end() - 1) break;
    *end = entry_lines.back();
    entries.pop_back();
    entry_lines.pop_back();
  }
  return entries;
}

// Returns true if the block at line i is a list of numbered entries, as those
// with which some chapters begin.
bool IsListAt(const std::vector<TextLine>& lines, size_t i) {
  if (lines[i].num_lines < 2) return false;
  const Rank first = SplitLabel(lines[i].text).rank;
  return first != Rank::kNone && first == SplitLabel(lines[i + 1].text).rank;
}

using LineIndex = std::unordered_map<std::string, std::vector<size_t>>;

// The lines from `first` on at which a heading may be, by each key that it may
// have in a table of contents.
LineIndex LinesByKey(const std::vector<TextLine>& lines, size_t first) {
  LineIndex by_key;
  const auto add = [&](std::string key, size_t line) {
    if (key.empty()) return;
    std::vector<size_t>& places = by_key[std::move(key)];
    if (places.empty() || places.back() != line) places.push_back(line);
  };
  for (size_t i = first; i < lines.size(); ++i) {
    if (!lines[i].is_first || ColumnsOf(lines[i].text) > kMaxHeadingColumns)
      continue;
    if (IsListAt(lines, i)) continue;
    add(HeadingKey(lines[i].text), i);
    if (lines[i].num_lines > kMaxListedLines) continue;
    const std::string block = BlockAt(lines, i);
    add(HeadingKey(block), i);
    const Label label = SplitLabel(block);
    add(HeadingKey(label.title), i);
    // The title may be in a block of its own.
    const size_t next = i + lines[i].num_lines;
    if (!label.label.empty() && label.title.empty() && next < lines.size() &&
        lines[next].num_lines <= kMaxHeadingLines) {
      add(HeadingKey(block + BlockAt(lines, next)), i);
    }
  }
  return by_key;
}

// Returns the first line with a key, at `after` or behind it.
std::optional<size_t> NextLine(const LineIndex& by_key, const std::string& key,
                               size_t after) {
  const auto lines = by_key.find(key);
  if (lines == by_key.end()) return std::nullopt;
  const auto line =
      std::lower_bound(lines->second.begin(), lines->second.end(), after);
  if (line == lines->second.end()) return std::nullopt;
  return *line;
}

// Returns the heading of the entry that begins at `first`, at `after` or behind
// it, and the number of lines that the entry has: the most with which there is
// such a heading. A line with a label is another entry.
std::pair<std::optional<size_t>, size_t> LineOf(
    const LineIndex& by_key, const std::vector<EntryKeys>& entries,
    size_t first, size_t after) {
  size_t num_lines = 1;
  while (num_lines < kMaxListedLines && first + num_lines < entries.size() &&
         !entries[first + num_lines].has_label) {
    ++num_lines;
  }
  for (; num_lines > 0; --num_lines) {
    EntryKeys keys = entries[first];
    for (size_t i = 1; i < num_lines; ++i) {
      keys.all += entries[first + i].all;
      keys.title += entries[first + i].all;
    }
    std::optional<size_t> line = NextLine(by_key, keys.all, after);
    if (!line.has_value()) line = NextLine(by_key, keys.title, after);
    if (line.has_value()) return {line, num_lines};
  }
  return {std::nullopt, 0};
}

// Returns true if the two entries from `first` on have headings between `after`
// and `line`: then an entry before them does not lead there.
bool NextComeBefore(const LineIndex& by_key,
                    const std::vector<EntryKeys>& entries, size_t first,
                    size_t after, size_t line) {
  for (int i = 0; i < 2; ++i) {
    if (first >= entries.size()) return false;
    const auto [next, num_lines] = LineOf(by_key, entries, first, after);
    if (!next.has_value() || *next >= line) return false;
    after = *next + 1;
    first += num_lines;
  }
  return true;
}

}  // namespace

ContentsPage FindContents(const std::vector<TextLine>& lines) {
  ContentsPage contents;
  const size_t most = std::min(lines.size(), kMaxLinesBefore);
  int num_titles = 0;
  LineIndex by_key;
  for (size_t i = 0; i < most && num_titles < kMaxTitles; ++i) {
    if (!lines[i].is_first || !IsContentsTitle(lines[i].text)) continue;
    ++num_titles;
    size_t end = 0;
    const std::vector<EntryKeys> entries = EntriesAt(lines, i + 1, &end);
    if (by_key.empty()) by_key = LinesByKey(lines, end);
    std::vector<size_t> headings;
    size_t after = end;
    size_t num_entries = entries.size();
    for (size_t entry = 0; entry < entries.size(); ++entry) {
      const auto [line, num_lines] = LineOf(by_key, entries, entry, after);
      if (!line.has_value()) continue;
      if (NextComeBefore(by_key, entries, entry + num_lines, after, *line)) {
        continue;
      }
      entry += num_lines - 1;
      num_entries -= num_lines - 1;
      headings.push_back(*line);
      after = *line + 1;
    }
    if (headings.size() >= 3 && headings.size() * 5 >= num_entries * 3) {
      const bool is_complete = headings.size() * 10 >= num_entries * 9;
      contents = {i, end, std::move(headings), is_complete};
      break;
    }
  }
  return contents;
}

}  // namespace tiercel::document
