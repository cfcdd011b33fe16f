#include "lib/documents/numbered_headings.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lib/documents/labels.h"
#include "lib/documents/page_numbers.h"
#include "lib/documents/text_writer.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr int kMaxTitleColumns = 75;  // if it stands apart from its label
// A part of a text is longer than an entry of a table of contents, and a part
// with only a number is longer than an item of a list.
constexpr size_t kMinPartBytes = 80;
constexpr size_t kMinCountedBytes = 400;
constexpr size_t kMinListed = 5;

struct Candidate {
  size_t line;
  size_t end_line;  // behind its last line
  std::string text;
  Label label;
  bool is_list = false;    // an entry of a list: one of several in a block
  bool is_listed = false;  // by a table of contents
};

bool HasLowerCase(std::string_view text) {
  const std::u32string all = ToUtf32(text);
  return std::any_of(all.begin(), all.end(), IsLowerCase);
}

// Returns true if a sentence goes on behind the label: "Part 2 of it was".
bool IsInSentence(const Label& label, std::string_view line) {
  if (label.title.empty()) return false;
  size_t next = 0;
  const std::string_view rest =
      line.substr(std::min(line.size(), label.label.size()));
  const size_t title = rest.find_first_not_of(' ');
  return title != std::string_view::npos &&
         IsLowerCase(CharacterAt(rest, title, &next));
}

Rank NamedRank(std::string_view line) {
  const Rank rank = SplitLabel(line).rank;
  return rank == Rank::kNumber ? Rank::kNone : rank;
}

// Returns the block that begins with line i on one line, in words.
std::string WordsAt(const std::vector<TextLine>& lines, size_t i) {
  std::string words;
  for (size_t line = i; line < i + lines[i].num_lines; ++line) {
    const std::string closed = Closed(lines[line].text);
    const std::string_view text = WithoutMarks(WithoutNote(lines[line].text));
    words.append(closed.empty() ? text : closed).append("\n");
  }
  words = OneLine(words);
  return std::string(WithoutMarks(words));
}

bool EndsInYear(std::string_view block) {
  const size_t digits = block.find_last_not_of("0123456789.") + 1;
  return NumberOf(block.substr(digits)) >= 1000;
}

// Adds the title in the block behind a label that has none.
void AddTitle(const std::vector<TextLine>& lines, Candidate* candidate) {
  const size_t next = candidate->end_line;
  if (next >= lines.size() || lines[next].num_lines > 2) return;
  const std::string block = WordsAt(lines, next);
  const std::string whole = BlockAt(lines, next);
  const bool is_marked = WithoutMarks(whole).size() < whole.size();
  // An introduction within a volume is no title of it, nor is the year on a
  // title page.
  const bool is_part = candidate->label.rank < Rank::kChapter &&
                       (IsUnnumberedPart(block) || EndsInYear(block));
  if (ColumnsOf(block) > kMaxTitleColumns || IsContentsTitle(block) ||
      is_part || SplitLabel(block).rank != Rank::kNone ||
      (HasLowerCase(block) && EndsAsProse(block) && !is_marked)) {
    return;
  }
  // Text must follow the title; at the end of the book it is a line of a list.
  if (next + lines[next].num_lines >= lines.size()) return;
  candidate->text = candidate->label.label + ": " + block;
  candidate->end_line = next + lines[next].num_lines;
}

// Returns true, and sets `candidate`, if a heading whose label is a word and a
// number begins at line i. The heading before it ends at line `after`.
bool IsNamed(const std::vector<TextLine>& lines, size_t i, size_t after,
             Candidate* candidate) {
  const TextLine& line = lines[i];
  if (ColumnsOf(line.text) > kMaxHeadingColumns) return false;
  const std::string closed = Closed(line.text);
  const std::string_view words =
      closed.empty() ? WithoutMarks(WithoutNote(line.text)) : closed;
  Label label = SplitLabel(words);
  if (label.rank == Rank::kNone || label.rank == Rank::kNumber) return false;
  size_t next = 0;
  // Chinese and Japanese books often have no blank lines.
  const bool is_ideographic =
      (IsIdeographic(CharacterAt(label.label, 0, &next)) ||
       IsIdeographic(CharacterAt(label.title, 0, &next))) &&
      ColumnsOf(line.text) <= kMaxTitleColumns && !EndsAsProse(line.text);
  const bool begins = line.is_first || i == after ||
                      (is_ideographic && EndsAsProse(lines[i - 1].text));
  if (!begins || IsInSentence(label, words)) return false;
  bool is_block = !is_ideographic && line.num_lines <= kMaxHeadingLines;
  if (is_block && line.num_lines > 1) {
    const Rank below = NamedRank(lines[i + 1].text);
    candidate->is_list = below == label.rank;
    is_block = below == Rank::kNone;
  }
  candidate->line = i;
  candidate->text = is_block ? WordsAt(lines, i) : std::string(words);
  candidate->end_line = i + (is_block ? line.num_lines : 1);
  const bool wants_title =
      is_block && label.title.empty() && line.num_lines == 1;
  candidate->label = std::move(label);
  if (wants_title) AddTitle(lines, candidate);
  return true;
}

size_t BytesBetween(const std::vector<TextLine>& lines, size_t begin,
                    size_t end) {
  size_t bytes = 0;
  for (size_t i = begin; i < std::min(end, lines.size()); ++i) {
    bytes += lines[i].text.size();
  }
  return bytes;
}

std::string KeyOf(const Candidate& candidate) {
  const Label& label = candidate.label;
  switch (label.rank) {
    case Rank::kNone:
      return HeadingKey(candidate.text);
    case Rank::kNumber:  // all of it: "2.1" is not "3.1"
      return "#" + label.label;
    default:
      if (label.num_parts > 1) return HeadingKey(label.label);
      return std::to_string(static_cast<int>(label.rank)) + "." +
             std::to_string(label.number);
  }
}

// Returns true for the heading of a volume or part over the headings from
// `begin` to `end`.
bool IsOver(const std::vector<Candidate>& candidates, size_t i, size_t begin,
            size_t end) {
  const Rank rank = candidates[i].label.rank;
  if (rank == Rank::kNone || rank >= Rank::kChapter) return false;
  if (end > candidates.size()) return false;
  for (size_t below = begin; below < end; ++below) {
    const Rank other = candidates[below].label.rank;
    if (other != Rank::kNone && other <= rank) return false;
  }
  return true;
}

// Drops entries of a table of contents without a title: they stand close
// together, and come again later.
void DropListed(const std::vector<TextLine>& lines,
                std::vector<Candidate>* candidates) {
  const size_t n = candidates->size();
  std::unordered_map<std::string, size_t> last;  // candidate with a key
  for (size_t i = 0; i < n; ++i) last[KeyOf((*candidates)[i])] = i;
  std::vector<bool> is_short(n);
  std::vector<bool> is_listed(n);
  for (size_t i = 0; i < n; ++i) {
    const Candidate& here = (*candidates)[i];
    const size_t end = i + 1 < n ? (*candidates)[i + 1].line : lines.size();
    is_short[i] = BytesBetween(lines, here.end_line, end) < kMinPartBytes;
    // "Notes" comes after each chapter.
    const bool is_title = here.is_listed && here.label.rank == Rank::kNone;
    const bool comes_again = !is_title && last[KeyOf(here)] > i;
    const bool goes_on =
        i > 0 && is_listed[i - 1] &&
        (here.label.rank == Rank::kNone ||
         here.label.number == (*candidates)[i - 1].label.number + 1);
    is_listed[i] = here.is_list || (comes_again && (is_short[i] || goes_on));
  }
  // The other sign of a table: so many entries that no book has parts so short.
  for (size_t begin = 0; begin < n;) {
    size_t end = begin;
    while (end < n && is_short[end]) ++end;
    if (end - begin >= kMinListed) {
      const bool is_over = IsOver(*candidates, begin, begin + 1, end);
      const bool is_under = IsOver(*candidates, end - 1, end, end + 1);
      for (size_t i = begin + (is_over ? 1 : 0); i < end - (is_under ? 1 : 0);
           ++i) {
        is_listed[i] = true;
      }
    }
    begin = end + 1;
  }
  std::vector<Candidate> kept;
  for (size_t i = 0; i < n; ++i) {
    if (!is_listed[i]) kept.push_back(std::move((*candidates)[i]));
  }
  *candidates = std::move(kept);
}

// Returns true if `title` is another's, or none, and a page number.
bool HasPageNumber(std::string_view title, std::string_view other) {
  const size_t number = title.find_last_not_of("0123456789") + 1;
  if (number == title.size()) return false;
  const std::string key = HeadingKey(title.substr(0, number));
  return key.empty() || key == HeadingKey(other);
}

// Drops the running heads of pages: "CHAPTER I  12" below that chapter's
// heading, and, if they are many, headings that are the same as the one before.
void DropRunningHeads(std::vector<Candidate>* candidates) {
  constexpr size_t kManyHeads = 3;
  std::vector<bool> is_numbered(candidates->size());
  std::vector<bool> is_same(candidates->size());
  const Candidate* heading = nullptr;
  size_t num_same = 0;
  for (size_t i = 0; i < candidates->size(); ++i) {
    const Candidate& here = (*candidates)[i];
    const Label& label = here.label;
    const bool is_named =
        label.rank != Rank::kNone && label.rank != Rank::kNumber;
    if (heading == nullptr || !is_named || here.is_listed ||
        KeyOf(*heading) != KeyOf(here)) {
      heading = is_named ? &here : nullptr;
      continue;
    }
    is_numbered[i] = HasPageNumber(label.title, heading->label.title);
    is_same[i] = label.title.empty() ||
                 HeadingKey(label.title) == HeadingKey(heading->label.title);
    num_same += is_same[i] ? 1 : 0;
  }
  const bool are_many =
      num_same >= kManyHeads && num_same * 4 >= candidates->size();
  std::vector<Candidate> kept;
  for (size_t i = 0; i < candidates->size(); ++i) {
    if (is_numbered[i] || (is_same[i] && are_many)) continue;
    kept.push_back(std::move((*candidates)[i]));
  }
  *candidates = std::move(kept);
}

// Returns the level by rank. A heading without a label or with only a number is
// a chapter.
int LevelOf(const Candidate& candidate) {
  if (candidate.label.rank == Rank::kNumber) {
    return static_cast<int>(Rank::kChapter) + candidate.label.num_parts - 1;
  }
  return static_cast<int>(candidate.label.rank == Rank::kNone
                              ? Rank::kChapter
                              : candidate.label.rank);
}

// A named part ("Preface") has the level of the numbered heading behind it: it
// stands before the first part, or before the first chapter of one. The last
// ("Epilogue") has the highest level there is.
std::vector<Heading> HeadingsOf(const std::vector<TextLine>& lines,
                                const std::vector<Candidate>& candidates) {
  int level = static_cast<int>(Rank::kChapter);
  for (const Candidate& candidate : candidates) {
    level = std::min(level, LevelOf(candidate));
  }
  std::vector<Heading> headings;
  headings.reserve(candidates.size());
  for (auto candidate = candidates.rbegin(); candidate != candidates.rend();
       ++candidate) {
    const bool is_part = candidate->label.rank == Rank::kNone &&
                         IsUnnumberedPart(candidate->text);
    const int own = is_part ? level : LevelOf(*candidate);
    if (candidate->label.rank != Rank::kNone) level = own;
    headings.push_back(
        {own, candidate->text, lines[candidate->line].begin, ""});
  }
  std::reverse(headings.begin(), headings.end());
  return headings;
}

// "1.1The Elements" is "1.1" and "The Elements": a web page loses the space.
// "3D Printing" and "5GHz" are words.
Label SplitGlued(std::string_view line) {
  const size_t at = line.find_first_not_of("0123456789.");
  if (at == 0 || at == std::string_view::npos || line[at - 1] == '.') return {};
  size_t next = 0;
  const bool is_word = IsUpperCase(CharacterAt(line, at, &next)) &&
                       IsLowerCase(CharacterAt(line, next, &next));
  if (!is_word) return {};
  return SplitLabel(std::string(line.substr(0, at)) + ". " +
                    std::string(line.substr(at)));
}

// "1 The Mill" is "1" and "The Mill", where such lines count.
Label SplitUnpointed(std::string_view line) {
  const size_t end = line.find_first_not_of("0123456789");
  if (end == 0 || end == std::string_view::npos || line[end] != ' ') return {};
  const size_t title = line.find_first_not_of(' ', end);
  size_t next = 0;
  const char32_t first = CharacterAt(line, title, &next);
  if (!IsUpperCase(first) && !IsIdeographic(first)) return {};
  return SplitLabel(std::string(line.substr(0, end)) + ". " +
                    std::string(line.substr(title)));
}

// "TWENTY-ONE": a spelled number and no more.
Label SplitSpelled(std::string_view line) {
  size_t next = 0;
  const bool is_title = IsUpperCase(CharacterAt(line, 0, &next));
  const int number = is_title ? NumberOf(line) : 0;
  if (number == 0) return {};
  return {.label = std::string(line),
          .title = {},
          .rank = Rank::kNumber,
          .number = number,
          .num_parts = 1};
}

std::vector<Candidate> NamedCandidates(const std::vector<TextLine>& lines,
                                       const Contents& contents) {
  std::vector<Candidate> candidates;
  bool has_named = false;
  bool is_complete = !contents.pages.empty() && contents.pages[0].is_complete;
  bool all_complete = is_complete;
  auto listed = contents.headings.begin();
  auto table = contents.pages.begin();  // the next one
  for (size_t i = 0; i < lines.size(); ++i) {
    if (table != contents.pages.end() && i == table->first_line) {
      if (!table->volume.empty()) {
        candidates.push_back(
            {i, i + 1, table->volume, SplitLabel(table->volume)});
      }
      is_complete = table->is_complete;
      all_complete = all_complete && is_complete;
      i = (table++)->end_line - 1;
      continue;
    }
    if (!candidates.empty() && i < candidates.back().end_line) continue;
    while (listed != contents.headings.end() && *listed < i) ++listed;
    const bool is_listed = listed != contents.headings.end() && *listed == i;
    // A heading that a complete table of contents does not list is none.
    if (is_complete && !is_listed) continue;
    Candidate candidate;
    candidate.is_listed = is_listed;
    const size_t after = candidates.empty() ? 0 : candidates.back().end_line;
    if (IsNamed(lines, i, after, &candidate)) {
      has_named = true;
    } else if (is_listed || (lines[i].is_first && lines[i].num_lines == 1 &&
                             IsUnnumberedPart(lines[i].text))) {
      const bool is_block = lines[i].num_lines <=
                            (is_listed ? kMaxListedLines : kMaxHeadingLines);
      candidate.line = i;
      candidate.end_line = i + (is_block ? lines[i].num_lines : 1);
      candidate.text =
          is_block ? WordsAt(lines, i) : std::string(lines[i].text);
      candidate.label = SplitLabel(candidate.text);
      if (is_block && candidate.label.rank == Rank::kNumber &&
          candidate.label.title.empty()) {
        AddTitle(lines, &candidate);
      }
    } else {
      continue;
    }
    candidates.push_back(std::move(candidate));
  }
  if (!has_named && contents.headings.empty()) return {};
  // All that a complete table lists stands behind it, however short it is.
  if (!all_complete) DropListed(lines, &candidates);
  DropRunningHeads(&candidates);
  return candidates;
}

// Returns true if nearly all candidates are bare numbers, those of pages.
bool ArePages(const std::vector<TextLine>& lines,
              const std::vector<Candidate>& candidates) {
  std::vector<size_t> bare;
  for (const Candidate& candidate : candidates) {
    const bool has_title = !SplitLabel(candidate.text).title.empty();
    const bool is_arabic = candidate.text.find_first_of("0123456789") == 0;
    if (!has_title && is_arabic) bare.push_back(candidate.line);
  }
  return bare.size() * 10 >= candidates.size() * 9 &&
         ArePageNumbers(lines, bare);
}

// Returns lines that begin with a number alone, each one more than that before
// it: chapters, in a text with `named` parts, or the sections of chapters that
// are named with their numbers.
std::vector<Candidate> CountedCandidates(const std::vector<TextLine>& lines,
                                         const std::vector<Candidate>& named,
                                         bool are_sections) {
  constexpr int kMaxParts = 6;
  std::vector<Candidate> candidates;
  std::array<int, kMaxParts + 1> counts{};  // the last number of each level
  bool begins_part = false;
  auto next = named.begin();
  for (size_t i = 0; i < lines.size(); ++i) {
    for (; next != named.end() && next->line <= i; ++next) {
      if (next->label.rank == Rank::kNone) continue;
      begins_part = true;
      if (!are_sections) continue;
      counts.fill(0);
      counts[1] = next->label.number;
    }
    if (next != named.begin() && i < std::prev(next)->end_line) continue;
    const TextLine& line = lines[i];
    if (!line.is_first || line.num_lines > 2 ||
        ColumnsOf(line.text) > kMaxTitleColumns ||
        line.text.find("...") != std::string_view::npos ||
        line.text.find(". .") != std::string_view::npos) {
      continue;
    }
    Label label = SplitLabel(line.text);
    if (label.rank == Rank::kNone && line.num_lines == 1) {
      label = SplitSpelled(line.text);
    }
    const bool is_glued = label.rank == Rank::kNone;
    if (is_glued) label = SplitGlued(line.text);
    if (is_glued && label.rank == Rank::kNone && line.num_lines == 1) {
      label = SplitUnpointed(line.text);
    }
    if (label.rank != Rank::kNumber || label.num_parts > kMaxParts) continue;
    if (!label.title.empty() && EndsAsProse(line.text)) continue;
    const auto level = static_cast<size_t>(label.num_parts);
    const std::string chapter = std::to_string(counts[1]) + ".";
    if (are_sections && (level == 1 || label.label.rfind(chapter, 0) != 0)) {
      continue;
    }
    const bool has_parent = level == 1 || counts[level - 1] > 0;
    const bool begins_again =
        level == 1 && label.number == 1 && (counts[1] > 1 || begins_part);
    if (!has_parent || (label.number != counts[level] + 1 && !begins_again)) {
      continue;
    }
    begins_part = false;
    counts[level] = label.number;
    std::fill(counts.begin() + label.num_parts + 1, counts.end(), 0);
    Candidate candidate = {i, i + line.num_lines, BlockAt(lines, i), label};
    if (is_glued) candidate.text = label.label + ". " + label.title;
    if (label.title.empty() && line.num_lines == 1) {
      AddTitle(lines, &candidate);
    }
    candidates.push_back(std::move(candidate));
  }
  if (candidates.size() < 2) return {};
  const size_t bytes =
      BytesBetween(lines, candidates.front().line, lines.size());
  if (bytes / candidates.size() < kMinCountedBytes) return {};
  if (ArePages(lines, candidates)) return {};
  return candidates;
}

// Returns the headings of `named`, and those that count within them.
std::vector<Heading> Joined(const std::vector<TextLine>& lines,
                            std::vector<Candidate> named, bool with_sections) {
  const auto has = [&](bool chapters) {
    return std::any_of(
        named.begin(), named.end(), [&](const Candidate& candidate) {
          const Rank rank = candidate.label.rank;
          return rank != Rank::kNone && (rank >= Rank::kChapter) == chapters;
        });
  };
  const bool are_sections = has(/*chapters=*/true);
  if (are_sections ? !with_sections : !has(/*chapters=*/false)) return {};
  std::vector<Candidate> counted =
      CountedCandidates(lines, named, are_sections);
  if (counted.empty()) return {};
  std::vector<Candidate> all;
  std::merge(
      std::make_move_iterator(named.begin()),
      std::make_move_iterator(named.end()),
      std::make_move_iterator(counted.begin()),
      std::make_move_iterator(counted.end()), std::back_inserter(all),
      [](const Candidate& a, const Candidate& b) { return a.line < b.line; });
  return HeadingsOf(lines, all);
}

}  // namespace

std::vector<Heading> FindNamed(const std::vector<TextLine>& lines,
                               const Contents& contents) {
  return HeadingsOf(lines, NamedCandidates(lines, contents));
}

std::vector<Heading> FindCounted(const std::vector<TextLine>& lines) {
  return HeadingsOf(lines, CountedCandidates(lines, {}, false));
}

Unlisted FindUnlisted(const std::vector<TextLine>& lines, bool with_sections) {
  std::vector<Candidate> named = NamedCandidates(lines, Contents());
  Unlisted found;
  found.named = HeadingsOf(lines, named);
  found.joined = Joined(lines, std::move(named), with_sections);
  return found;
}

}  // namespace tiercel::document
