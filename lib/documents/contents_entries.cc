#include "lib/documents/contents_entries.h"

#include <algorithm>
#include <utility>

#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr size_t kMaxEntries = 2000;

// Returns true for what may stand between an entry and its page.
bool IsLeader(char32_t c) {
  constexpr std::u32string_view kLeaders =
      U" \t.\u00a0\u00b7\u2024\u2025\u2026\u2022\u22c5\u3000\u30fb\uff0e_-"
      U"\u2013"
      U"\u2014\u2015";
  return kLeaders.find(c) != std::u32string_view::npos;
}

// Returns an entry without the page number at its end and the leader before it.
std::string WithoutPageNumber(std::string_view entry) {
  const std::u32string all = ToUtf32(entry);
  size_t number = all.size();
  while (number > 0 && !IsLeader(all[number - 1])) --number;
  size_t words = number;
  while (words > 0 && IsLeader(all[words - 1])) --words;
  if (words == 0 || number == all.size() ||
      NumberOf(FromUtf32(all.substr(number))) == 0) {
    return std::string(entry);
  }
  // "Act 5" has a number and no leader, "3.2. mc" has a title.
  const std::u32string leader = all.substr(words, number - words);
  // "-x" is an option, and "1914-18" a time.
  const auto num_dashes =
      std::count_if(leader.begin(), leader.end(), [](char32_t c) {
        return std::u32string_view(U"-_\u2013\u2014\u2015").find(c) !=
               std::u32string_view::npos;
      });
  const bool is_led = leader.size() > 1 && leader != U". " &&
                      (num_dashes == 0 || num_dashes > 2);
  return is_led ? FromUtf32(all.substr(0, words)) : std::string(entry);
}

// Returns an entry without a number that one blank parts from it, or that
// stands before it: it may be a page or a part of the title. "" if it has none.
std::string_view WithoutNumber(std::string_view entry) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t begin = entry.find_first_not_of(kDigits);
  const bool has_begin =
      begin > 0 && begin != std::string_view::npos && IsSpace(entry[begin]);
  const bool is_apart =
      has_begin && begin + 1 < entry.size() && IsSpace(entry[begin + 1]);
  const size_t end = entry.find_last_not_of(kDigits) + 1;
  const bool has_end = end > 1 && end < entry.size() && entry[end - 1] == ' ';
  if (has_end && !is_apart) return entry.substr(0, end - 1);
  return has_begin ? entry.substr(begin + 1) : std::string_view();
}

EntryKeys KeysOf(std::string_view entry) {
  // "A. Manifesto" may be "Appendix A. Manifesto" in the text.
  const bool has_letter = entry.size() > 3 && entry[0] >= 'A' &&
                          entry[0] <= 'Z' && entry.substr(1, 2) == ". ";
  const Label label = SplitLabel(entry);
  const bool is_lettered = has_letter && label.rank == Rank::kNone;
  EntryKeys keys = {HeadingKey(entry),
                    HeadingKey(is_lettered ? entry.substr(3) : label.title),
                    is_lettered || label.rank != Rank::kNone,
                    label.number,
                    {},
                    {}};
  const std::string_view rest = WithoutNumber(entry);
  const bool is_label = label.rank != Rank::kNone && label.title.empty();
  if (!rest.empty() && !is_label) {
    keys.unpaged = HeadingKey(rest);
    keys.unpaged_title = HeadingKey(SplitLabel(rest).title);
  }
  return keys;
}

// Returns true if a line with keys `line` is the one that `entry` leads to.
bool LeadsTo(const EntryKeys& entry, const EntryKeys& line) {
  return line.all == entry.all ||
         (!line.all.empty() && line.all == entry.unpaged) ||
         (!line.title.empty() &&
          (line.title == entry.title || line.title == entry.unpaged_title));
}

// Returns true if the block at line i is a list of numbered entries, as those
// with which some chapters begin.
bool IsListAt(const std::vector<TextLine>& lines, size_t i) {
  if (lines[i].num_lines < 2) return false;
  const Rank first = SplitLabel(lines[i].text).rank;
  return first != Rank::kNone && first == SplitLabel(lines[i + 1].text).rank;
}

// Returns the number of lines with a key in [begin, end).
size_t NumLines(const LineIndex& by_key, const std::string& key, size_t begin,
                size_t end) {
  const auto lines = by_key.find(key);
  if (lines == by_key.end()) return 0;
  const auto first =
      std::lower_bound(lines->second.begin(), lines->second.end(), begin);
  return static_cast<size_t>(std::lower_bound(first, lines->second.end(), end) -
                             first);
}

// Returns the number of lines in [begin, end) that have a key of an entry.
size_t NumLines(const LineIndex& by_key, const EntryKeys& entry, size_t begin,
                size_t end) {
  return NumLines(by_key, entry.all, begin, end) +
         NumLines(by_key, entry.unpaged, begin, end);
}

// Drops the heading of a volume or part, with its title, before the chapter
// that ended the table: no list ends so, and the text has none like it later.
void DropHeadOfText(const std::vector<TextLine>& lines, const LineIndex& by_key,
                    size_t end_of_text, Entries* entries) {
  const Rank first = RankOf(lines[entries->lines.front()].text);
  for (size_t n = 1; n <= kMaxHeadingLines && n < entries->lines.size(); ++n) {
    const size_t at = entries->lines.size() - n;
    if (NumLines(by_key, entries->keys[at], entries->end, end_of_text) > 0) {
      return;
    }
    if (RankOf(lines[entries->lines[at]].text) >= first) continue;
    for (size_t i = 0; i < n; ++i) entries->Pop();
    return;
  }
}

// Drops the label of the first chapter, which stands before the line that ended
// the table: no other entry is such a label alone, or the first entry has that
// label itself.
void DropLabel(Entries* entries) {
  if (entries->keys.size() < 2) return;
  const EntryKeys first = entries->keys.front();
  const EntryKeys last = entries->keys.back();
  if (!last.has_label || !last.title.empty()) return;
  const auto is_alone = [](const EntryKeys& entry) {
    return entry.has_label && entry.title.empty();
  };
  const bool is_first = last.number == std::max(first.number, 1);
  const bool is_only =
      std::count_if(entries->keys.begin(), entries->keys.end(), is_alone) == 1;
  if (first.all == last.all + first.title || (is_first && is_only)) {
    entries->Pop();
  }
}

// Drops a few last entries that come again right before the prose: if the first
// entry is no chapter, they are the first headings of the text. A title that
// the text has as often as the entries, such as "Notes", is no such heading.
void DropFirstOfText(const LineIndex& by_key, size_t end_of_text,
                     Entries* entries) {
  std::vector<EntryKeys>& keys = entries->keys;
  size_t before = keys.size();  // the entry before the one that came again
  for (size_t n = 0; n < kMaxHeadingLines && keys.size() > 1; ++n) {
    const auto is_last = [&](const EntryKeys& entry) {
      return entry.all == keys.back().all || entry.unpaged == keys.back().all;
    };
    const auto again = std::find_if(keys.begin(), keys.end() - 1, is_last);
    if (again == keys.end() - 1) return;
    const auto place = static_cast<size_t>(again - keys.begin());
    if (n > 0 && place + 1 != before) return;
    const auto times =
        static_cast<size_t>(std::count_if(keys.begin(), keys.end(), is_last));
    if (NumLines(by_key, keys.back(), entries->end, end_of_text) >= times) {
      return;
    }
    before = place;
    entries->Pop();
    DropLabel(entries);
  }
}

// Returns true if the block behind a label may be the title of it: a number of
// a page has none, and a preface in a volume is a chapter.
bool MayHaveTitle(const Label& label, std::string_view title) {
  const bool is_page = label.rank == Rank::kNumber &&
                       label.label.find_first_of("0123456789") == 0;
  const bool is_over = label.rank < Rank::kChapter;
  return !is_page && !(is_over && IsUnnumberedPart(title)) &&
         SplitLabel(title).rank == Rank::kNone;
}

}  // namespace

bool IsProse(const std::vector<TextLine>& lines, size_t i) {
  if (ColumnsOf(lines[i].text) > kMaxHeadingColumns) return true;
  if (!lines[i].is_first || lines[i].num_lines < 4) return false;
  return ColumnsOf(lines[i].text) > 55 && ColumnsOf(lines[i + 1].text) > 55 &&
         ColumnsOf(lines[i + 2].text) > 55;
}

Rank RankOf(std::string_view text) {
  const Rank rank = SplitLabel(text).rank;
  return rank == Rank::kNone || rank == Rank::kNumber ? Rank::kChapter : rank;
}

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
    const std::string whole = BlockAt(lines, i);
    add(HeadingKey(whole), i);
    const std::string_view block = WithoutNote(whole);
    add(HeadingKey(block), i);
    const Label label = SplitLabel(block);
    add(HeadingKey(label.title), i);
    // The title may be in a block of its own.
    const size_t next = i + lines[i].num_lines;
    if (!label.label.empty() && label.title.empty() && next < lines.size() &&
        lines[next].num_lines <= kMaxHeadingLines) {
      const std::string below = BlockAt(lines, next);
      const std::string_view title = WithoutNote(below);
      add(HeadingKey(label.label + std::string(title)), i);
      if (MayHaveTitle(label, title)) add(HeadingKey(title), i);
    }
  }
  return by_key;
}

Entries EntriesAt(const std::vector<TextLine>& lines, const LineIndex& by_key,
                  const std::vector<size_t>& titles, size_t title) {
  Entries entries = {};
  const auto add = [&](std::string_view text, size_t line) {
    EntryKeys keys = KeysOf(text);
    if (keys.all.empty()) return;
    entries.keys.push_back(std::move(keys));
    entries.lines.push_back(line);
  };
  const std::string of = VolumeOfContents(lines[title].text);
  if (NumLines(by_key, HeadingKey(of), title + 1, lines.size()) > 0) {
    add(of, title);
  }
  bool comes_again = false;
  size_t i = title + 1;
  for (; i < lines.size() && entries.keys.size() < kMaxEntries; ++i) {
    const std::string volume = VolumeOfContents(lines[i].text);
    const std::string text =
        volume.empty() ? WithoutPageNumber(lines[i].text) : volume;
    const EntryKeys keys = KeysOf(text);
    // Entries that are as long as prose have leaders, or one comes again.
    const bool is_led = text.size() < lines[i].text.size();
    const bool is_entry =
        is_led || (ColumnsOf(lines[i].text) > kMaxHeadingColumns &&
                   NumLines(by_key, keys, i + 1, lines.size()) > 0);
    if (IsProse(lines, i) && !is_entry) break;
    // The table ends where its first entry comes again: the first chapter
    // itself.
    if (!entries.keys.empty()) {
      const bool is_block = lines[i].is_first && lines[i].num_lines > 1 &&
                            lines[i].num_lines <= kMaxListedLines;
      comes_again = LeadsTo(entries.keys.front(), keys) ||
                    (is_block &&
                     LeadsTo(entries.keys.front(), KeysOf(BlockAt(lines, i))));
    }
    if (comes_again) break;
    add(text, i);
  }
  entries.end = i;
  const auto next = std::lower_bound(titles.begin(), titles.end(), i);
  const size_t end_of_text = next == titles.end() ? lines.size() : *next;
  if (!comes_again) {
    DropFirstOfText(by_key, end_of_text, &entries);
    return entries;
  }
  DropLabel(&entries);
  DropHeadOfText(lines, by_key, end_of_text, &entries);
  return entries;
}

}  // namespace tiercel::document
