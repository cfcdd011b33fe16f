#include "lib/documents/contents_page.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "lib/documents/contents_entries.h"
#include "lib/documents/labels.h"

namespace tiercel::document {
namespace {

// The first table of contents begins within these lines.
constexpr size_t kMaxLinesBefore = 2000;
constexpr size_t kMaxTitles = 4;  // lines that may be its title
// Tables of a text, and lines of a title page.
constexpr size_t kMaxTables = 100;
constexpr size_t kMaxTitlePage = 30;

// Finds what the entries of a table lead to.
class Matcher {
 public:
  // `later` are tables behind this one: their lines are no headings, nor are
  // those from `end` on.
  Matcher(const LineIndex& by_key, const std::vector<EntryKeys>& entries,
          std::span<const ContentsPage> later, size_t end)
      : by_key_(by_key), entries_(entries), later_(later), end_(end) {}

  // Returns the table with the headings at `after` or behind it.
  ContentsPage Match(size_t after) const {
    ContentsPage page;
    size_t num_entries = entries_.size();
    for (size_t entry = 0; entry < entries_.size(); ++entry) {
      const auto [line, num_lines] = LineOf(entry, after);
      if (!line.has_value() ||
          NextComeBefore(entry + num_lines, after, *line)) {
        continue;
      }
      entry += num_lines - 1;
      num_entries -= num_lines - 1;
      page.headings.push_back(*line);
      after = *line + 1;
    }
    const size_t num_found = page.headings.size();
    if (num_found < 3 || num_found * 5 < num_entries * 3) return {};
    page.is_complete = num_found * 10 >= num_entries * 9;
    return page;
  }

 private:
  // Returns the first line with a key, at `after` or behind it.
  std::optional<size_t> NextLine(const std::string& key, size_t after) const {
    const auto lines = by_key_.find(key);
    if (lines == by_key_.end()) return std::nullopt;
    const auto end = lines->second.end();
    auto line = std::lower_bound(lines->second.begin(), end, after);
    // The last comes first.
    for (auto table = later_.rbegin(); table != later_.rend(); ++table) {
      if (line == end) return std::nullopt;
      if (*line < table->first_line || *line >= table->end_line) continue;
      line = std::lower_bound(line, end, table->end_line);
    }
    return line == end || *line >= end_ ? std::nullopt : std::optional(*line);
  }

  // Returns the keys of an entry of some lines. A page stands in its last.
  EntryKeys Joined(size_t first, size_t num_lines) const {
    EntryKeys keys = entries_[first];
    for (size_t i = 1; i < num_lines; ++i) {
      const EntryKeys& next = entries_[first + i];
      const bool has_page = i + 1 == num_lines && !next.unpaged.empty();
      keys.unpaged = has_page ? keys.all + next.unpaged : "";
      keys.unpaged_title = has_page ? keys.title + next.unpaged : "";
      keys.all += next.all;
      keys.title += next.all;
    }
    return keys;
  }

  // Returns the heading of the entry that begins at `first`, at `after` or
  // behind it, and the number of lines that the entry has: the most with which
  // there is such a heading. A line with a label is another entry, and so is
  // the one behind a label that has a heading of its own.
  std::pair<std::optional<size_t>, size_t> LineOf(size_t first,
                                                  size_t after) const {
    size_t num_lines = 1;
    while (num_lines < kMaxListedLines && first + num_lines < entries_.size() &&
           !entries_[first + num_lines].has_label) {
      ++num_lines;
    }
    for (; num_lines > 0; --num_lines) {
      const EntryKeys keys = Joined(first, num_lines);
      std::optional<size_t> line = NextLine(keys.all, after);
      if (!line.has_value()) line = NextLine(keys.unpaged, after);
      if (!line.has_value()) {
        line = NextLine(keys.title, after);
        if (!line.has_value()) line = NextLine(keys.unpaged_title, after);
        const bool is_label = num_lines > 1 && entries_[first].title.empty();
        const std::optional<size_t> own =
            is_label ? NextLine(entries_[first].all, after) : std::nullopt;
        if (own.has_value() && own < line) continue;
      }
      if (line.has_value()) return {line, num_lines};
    }
    return {std::nullopt, 0};
  }

  // Returns true if the two entries from `first` on have headings between
  // `after` and `line`: then an entry before them does not lead there.
  bool NextComeBefore(size_t first, size_t after, size_t line) const {
    for (int i = 0; i < 2; ++i) {
      if (first >= entries_.size()) return false;
      const auto [next, num_lines] = LineOf(first, after);
      if (!next.has_value() || *next >= line) return false;
      after = *next + 1;
      first += num_lines;
    }
    return true;
  }

  const LineIndex& by_key_;
  const std::vector<EntryKeys>& entries_;
  const std::span<const ContentsPage> later_;
  const size_t end_;
};

// Returns true for the title of a table, which may be in italics or have
// letters that stand apart.
bool IsTitle(std::string_view line) {
  const std::string closed = Closed(line);
  return IsContentsTitle(closed.empty() ? WithoutMarks(line) : closed);
}

// Returns the lines with titles of tables.
std::vector<size_t> TitlesOf(const std::vector<TextLine>& lines) {
  std::vector<size_t> titles;
  for (size_t i = 0; i < lines.size() && titles.size() < kMaxTables; ++i) {
    if (lines[i].is_first && IsTitle(lines[i].text)) {
      titles.push_back(i);
    }
  }
  return titles;
}

// The highest rank that a table lists.
Rank HighestOf(const std::vector<TextLine>& lines, const ContentsPage& page) {
  Rank highest = Rank::kChapter;
  for (const size_t line : page.headings) {
    highest = std::min(highest, RankOf(lines[line].text));
  }
  return highest;
}

// Returns true if line i, on a title page, is the heading of a volume.
bool IsVolumeAt(const std::vector<TextLine>& lines, size_t i) {
  return lines[i].is_first && RankOf(lines[i].text) < Rank::kChapter;
}

// A title page: the lines from `begin` on before a table.
size_t TitlePageBefore(const std::vector<TextLine>& lines, size_t table,
                       size_t begin) {
  size_t first = table;
  while (first > begin && table - first < kMaxTitlePage &&
         !IsProse(lines, first - 1)) {
    --first;
  }
  return first;
}

// Returns true if the last heading before a table is a chapter's: then it lists
// that chapter alone.
bool IsOfChapter(const std::vector<TextLine>& lines, const ContentsPage& page) {
  const size_t first = TitlePageBefore(lines, page.first_line, 0);
  for (size_t i = page.first_line; i-- > first;) {
    if (!lines[i].is_first) continue;
    const Label label = SplitLabel(lines[i].text);
    // A number alone may be a year.
    if (label.rank == Rank::kNone ||
        (label.rank == Rank::kNumber && label.title.empty())) {
      continue;
    }
    return label.rank >= Rank::kChapter;
  }
  return false;
}

// Adds a line to some in their order.
void InsertLine(size_t line, std::vector<size_t>* all) {
  const auto place = std::lower_bound(all->begin(), all->end(), line);
  if (place == all->end() || *place != line) all->insert(place, line);
}

// Adds a table behind others. One in the text that another lists is of a part
// of it: its headings lie below the one that it stands under.
void AddTable(const std::vector<TextLine>& lines, ContentsPage page,
              Contents* contents) {
  if (!contents->pages.empty() && IsOfChapter(lines, page)) {
    return;
  }
  std::vector<size_t>* const all = &contents->headings;
  if (!all->empty() && page.first_line < all->back()) {
    const auto behind =
        std::lower_bound(all->begin(), all->end(), page.first_line);
    const Rank above = behind == all->begin()
                           ? Rank::kNone
                           : RankOf(lines[*std::prev(behind)].text);
    const auto is_beside = [&](size_t line) {
      return RankOf(lines[line].text) <= above;
    };
    page.headings.erase(
        std::remove_if(page.headings.begin(), page.headings.end(), is_beside),
        page.headings.end());
    if (page.headings.empty()) return;
  }
  for (const size_t line : page.headings) InsertLine(line, all);
  contents->pages.push_back(std::move(page));
}

// Adds the headings of volumes, which stand over their tables or between these
// and the first chapter.
void AddVolumes(const std::vector<TextLine>& lines, Contents* contents) {
  std::vector<size_t>* const all = &contents->headings;
  for (ContentsPage& page : contents->pages) {
    const Rank highest = HighestOf(lines, page);
    const auto behind =
        std::lower_bound(all->begin(), all->end(), page.first_line);
    const bool is_first = behind == all->begin();
    const size_t begin = is_first ? 0 : *std::prev(behind) + 1;
    bool has_heading =
        highest <= RankOf(page.volume) ||
        (!is_first && RankOf(lines[*std::prev(behind)].text) < highest);
    const auto look = [&](size_t first, size_t end) {
      for (size_t i = first; i < end; ++i) {
        if (!IsVolumeAt(lines, i) || RankOf(lines[i].text) >= highest) continue;
        InsertLine(i, all);
        has_heading = true;
      }
    };
    look(TitlePageBefore(lines, page.first_line, begin), page.first_line);
    look(page.end_line, page.headings.front());
    if (has_heading) page.volume.clear();
  }
}

// Returns the table at the end of a text, as French books have it; none if no
// more than the last quarter has its headings.
Contents FindContentsAtEnd(const std::vector<TextLine>& lines, size_t title,
                           const std::vector<size_t>& titles) {
  constexpr size_t kMaxLinesBehind = 20;
  const LineIndex by_key = LinesByKey(lines, 0);
  const Entries entries = EntriesAt(lines, by_key, titles, title);
  if (lines.size() - entries.end > kMaxLinesBehind) return {};
  ContentsPage page = Matcher(by_key, entries.keys, {}, title).Match(0);
  if (page.headings.empty() || page.headings.front() * 4 > lines.size() * 3) {
    return {};
  }
  page.first_line = title;
  page.end_line = entries.end;
  Contents contents;
  contents.headings = page.headings;
  contents.pages.push_back(std::move(page));
  return contents;
}

}  // namespace

Contents FindContents(const std::vector<TextLine>& lines) {
  const std::vector<size_t> titles = TitlesOf(lines);
  if (titles.empty()) return {};
  const LineIndex by_key = LinesByKey(lines, titles.front() + 1);
  std::vector<ContentsPage> tables;  // the last comes first
  for (auto title = titles.rbegin(); title != titles.rend(); ++title) {
    const Entries entries = EntriesAt(lines, by_key, titles, *title);
    // A title among the entries begins no table of its own.
    size_t num_later = tables.size();
    while (num_later > 0 && tables[num_later - 1].first_line < entries.end) {
      --num_later;
    }
    const std::span later(tables.data(), num_later);
    ContentsPage page =
        Matcher(by_key, entries.keys, later, lines.size()).Match(entries.end);
    if (page.headings.empty()) continue;
    tables.resize(num_later);
    page.first_line = *title;
    page.end_line = entries.end;
    page.volume = VolumeOfContents(lines[*title].text);
    tables.push_back(std::move(page));
  }
  if (tables.empty()) return FindContentsAtEnd(lines, titles.back(), titles);
  std::reverse(tables.begin(), tables.end());
  Contents contents;
  const size_t last = titles[std::min(titles.size(), kMaxTitles) - 1];
  if (tables.front().first_line > last ||
      tables.front().first_line >= kMaxLinesBefore) {
    return {};
  }
  // The table of a chapter is no beginning of others.
  if (IsOfChapter(lines, tables.front())) tables.resize(1);
  for (ContentsPage& page : tables) AddTable(lines, std::move(page), &contents);
  if (contents.pages.size() > 1) {
    AddVolumes(lines, &contents);
  } else {
    contents.pages.front().volume.clear();
  }
  return contents;
}

bool IsInTable(const std::vector<TextLine>& lines, const Contents& contents,
               size_t place) {
  return std::any_of(contents.pages.begin(), contents.pages.end(),
                     [&](const ContentsPage& page) {
                       return place >= lines[page.first_line].begin &&
                              (page.end_line == lines.size() ||
                               place < lines[page.end_line].begin);
                     });
}

}  // namespace tiercel::document
