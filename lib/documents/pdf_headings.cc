#include "lib/documents/pdf_headings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "lib/documents/contents_page.h"
#include "lib/documents/labels.h"
#include "lib/documents/plain_text.h"
#include "lib/documents/text_lines.h"
#include "lib/documents/undeclared_headings.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

constexpr float kSameSize = 0.05F;  // share of the height of letters
// A heading is shorter: in more lines a saying or a quotation is set large.
constexpr size_t kMaxTypedLines = 4;
constexpr size_t kMaxTypedBytes = 200;
// Before chapters with numbers a preface has more.
constexpr size_t kMinBytesOfPart = 1500;
constexpr size_t kFewNumbered = 3;
constexpr size_t kMostFront = 50;  // lines of a title page
constexpr size_t kLeastShare = 5;  // the text, to its large letters

bool AreOfOneSize(float a, float b) {
  return std::abs(a - b) <= kSameSize * std::max(a, b);
}

// Lines of one size that follow each other on one page.
struct Run {
  PdfLargeLine first;
  float height = 0;  // the largest line's
  std::string text;
  size_t end = 0;  // in bytes of the document's text
  size_t num_lines = 1;
};

bool IsLoneLabel(const std::string& text) {
  const Label label = SplitLabel(text);
  return label.rank != Rank::kNone && label.title.empty();
}

std::vector<Run> RunsOf(const std::vector<PdfLargeLine>& lines) {
  std::vector<Run> runs;
  for (const PdfLargeLine& line : lines) {
    const size_t end = line.begin + line.text.size();
    Run* const last = runs.empty() ? nullptr : &runs.back();
    const bool is_next =
        last != nullptr && line.is_joined && line.page == last->first.page;
    if (is_next && IsLoneLabel(last->text) && !IsLoneLabel(line.text)) {
      last->text = SplitLabel(last->text).label + ": " + line.text;
      last->height = std::max(last->height, line.height);
      last->first.height = line.height;
    } else if (is_next && line.is_close && !IsLoneLabel(line.text) &&
               AreOfOneSize(line.height, last->first.height)) {
      last->text += " " + line.text;
    } else {
      runs.push_back({line, line.height, line.text, end, 1});
      continue;
    }
    last->end = end;
    ++last->num_lines;
  }
  return runs;
}

// The sizes of headings, the largest first; among those of one size the numbers
// with more parts ("2.1") come last.
struct Size {
  float height;
  int depth;
};

Size SizeOf(const Run& run) {
  return {run.height, std::max(SplitLabel(run.text).num_parts - 1, 0)};
}

bool AreEqual(const Size& a, const Size& b) {
  return a.depth == b.depth && AreOfOneSize(a.height, b.height);
}

std::vector<Size> SizesOf(const std::vector<Run>& runs) {
  std::vector<Size> sizes;
  for (const Run& run : runs) sizes.push_back(SizeOf(run));
  std::sort(sizes.begin(), sizes.end(),
            [](const Size& a, const Size& b) { return a.height > b.height; });
  // Heights that are nearly equal become one, so that depths can be compared.
  for (size_t i = 1; i < sizes.size(); ++i) {
    if (AreOfOneSize(sizes[i].height, sizes[i - 1].height)) {
      sizes[i].height = sizes[i - 1].height;
    }
  }
  std::stable_sort(
      sizes.begin(), sizes.end(), [](const Size& a, const Size& b) {
        return a.height != b.height ? a.height > b.height : a.depth < b.depth;
      });
  sizes.erase(std::unique(sizes.begin(), sizes.end(), AreEqual), sizes.end());
  return sizes;
}

// Returns true for the first large line of a page, whose size others have, too:
// a page of a talk has such a title, with little text below it.
bool IsTitleOfPage(const std::vector<Run>& runs, size_t i) {
  constexpr std::ptrdiff_t kMany = 3;
  return (i == 0 || runs[i - 1].first.page < runs[i].first.page) &&
         std::count_if(runs.begin(), runs.end(), [&](const Run& run) {
           return AreOfOneSize(run.height, runs[i].height);
         }) >= kMany;
}

// Returns true for a heading with a number, as "Chapter 3", "2." and "2 Scope".
bool IsNumbered(const Run& run) {
  constexpr int kMost = 100;  // years are more
  if (SplitLabel(run.text).rank != Rank::kNone) return true;
  const std::string first = run.text.substr(0, run.text.find(' '));
  const int number = NumberOf(first);
  return number > 0 && number < kMost &&
         first.find_first_not_of("0123456789") == std::string::npos;
}

// Returns true for a quotation or a sentence in large letters, and for figures.
bool IsDisplay(const Run& run) {
  const std::u32string letters = ToUtf32(run.text);
  constexpr std::u32string_view kMarks = U"\"\u201c\u201e\u00ab\u300c";
  if (kMarks.find(letters.front()) != kMarks.npos &&
      !IsLetter(letters.back()) && !IsDigit(letters.back())) {
    return true;
  }
  constexpr size_t kLongSentence = 60;
  if (letters.back() == U'.' && letters.size() > kLongSentence) return true;
  const auto num_letters =
      std::count_if(letters.begin(), letters.end(), IsLetter);
  return static_cast<size_t>(num_letters) * 2 < letters.size() &&
         !IsNumbered(run);
}

// Drops the lines of a title page but the largest: those with little text below
// them and, where headings have numbers, those before the first number in sizes
// that none of them has. Returns true if there were any: then the first heading
// is the document's title.
bool DropFront(std::string_view text, std::vector<Run>* runs) {
  std::vector<float> numbered;  // heights
  for (const Run& run : *runs) {
    if (IsNumbered(run) && SizeOf(run).depth == 0) {
      numbered.push_back(run.height);
    }
  }
  std::sort(numbered.begin(), numbered.end());
  const auto has_numbered = [&](float height) {
    const auto next = std::lower_bound(numbered.begin(), numbered.end(),
                                       height * (1 - kSameSize));
    return next != numbered.end() && AreOfOneSize(*next, height);
  };
  const auto is_front = [&](size_t i) {
    const Run& run = (*runs)[i];
    if (IsNumbered(run) || IsUnnumberedPart(run.text)) return false;
    const size_t next =
        i + 1 < runs->size() ? (*runs)[i + 1].first.begin : text.size();
    if (numbered.size() >= kFewNumbered) {
      return next - std::min(next, run.end) < kMinBytesOfPart ||
             !has_numbered(run.height);
    }
    const size_t end = std::min(next, run.first.page_end);
    return end - std::min(end, run.end) < kMinTextBytes &&
           !IsTitleOfPage(*runs, i);
  };
  size_t count = 0;
  const size_t most = std::min(runs->size(), kMostFront);
  while (count < most && is_front(count)) ++count;
  if (count == 0) return false;
  const auto end = runs->begin() + static_cast<std::ptrdiff_t>(count);
  const auto title = std::max_element(
      runs->begin(), end,
      [](const Run& a, const Run& b) { return a.height < b.height; });
  if (title != runs->begin()) runs->front() = std::move(*title);
  runs->erase(runs->begin() + 1, end);
  return true;
}

// Drops what stands on a third of the pages, three or more, as the name of a
// company on each sheet of its letters.
void DropRepeated(std::vector<Run>* runs) {
  constexpr size_t kMany = 3;
  if (runs->empty()) return;
  std::unordered_map<std::string, size_t> counts;
  for (const Run& run : *runs) ++counts[HeadingKey(run.text)];
  const size_t num_pages = runs->back().first.page + 1;
  std::erase_if(*runs, [&](const Run& run) {
    const size_t count = counts[HeadingKey(run.text)];
    return count >= kMany && count * 3 >= num_pages;
  });
}

// Gives headings with the same word ("Chapter 3", "Chapter 4") one level.
void LevelWords(std::vector<Heading>* headings) {
  std::map<Rank, int> levels;
  for (const Heading& heading : *headings) {
    const Rank rank = SplitLabel(heading.text).rank;
    const auto [level, is_new] = levels.emplace(rank, heading.level);
    level->second = std::min(level->second, heading.level);
  }
  for (Heading& heading : *headings) {
    const Rank rank = SplitLabel(heading.text).rank;
    if (rank != Rank::kNone && rank != Rank::kNumber) {
      heading.level = levels[rank];
    }
  }
}

// Drops what stands in the tables of contents of a text, but not what they
// list.
void DropTables(std::string_view text, std::vector<Heading>* headings) {
  const std::vector<TextLine> lines = LinesOf(text);
  const Contents contents = FindContents(lines);
  std::set<size_t> listed;  // places
  for (const size_t line : contents.headings) listed.insert(lines[line].begin);
  // A title may be listed without the label before it.
  const auto is_listed = [&](const Heading& heading) {
    const auto next = listed.lower_bound(heading.begin);
    return next != listed.end() && *next < heading.begin + heading.text.size();
  };
  std::erase_if(*headings, [&](const Heading& heading) {
    return IsInTable(lines, contents, heading.begin) && !is_listed(heading);
  });
}

// Returns true if numbers that count are set large here and there alone: then
// the size of letters does not show what begins a chapter.
bool MissMany(const std::vector<Heading>& typed,
              const std::vector<Heading>& found) {
  size_t num_numbered = 0;
  size_t num_typed = 0;
  for (const Heading& heading : found) {
    if (SplitLabel(heading.text).rank == Rank::kNone) continue;
    ++num_numbered;
    const auto at = std::lower_bound(
        typed.begin(), typed.end(), heading.begin,
        [](const Heading& other, size_t begin) { return other.begin < begin; });
    num_typed +=
        static_cast<size_t>(at != typed.end() && at->begin == heading.begin);
  }
  return num_typed > 0 && num_typed * 5 < num_numbered * 4;
}

std::vector<Section> SectionsOfText(const std::vector<PdfLargeLine>& lines,
                                    std::string_view text) {
  std::vector<Heading> found = FindHeadings(text);
  std::vector<Heading> typed = HeadingsOfType(lines, text);
  const auto has_few = [&] {
    return std::count_if(typed.begin(), typed.end(), [](const Heading& h) {
             return h.level > kLevelOfTitle;
           }) < 2;
  };
  if (!has_few()) DropTables(text, &typed);
  if (has_few() || MissMany(typed, found)) return SectionsOf(found);
  return SectionsOf(WithUndeclared(text, std::move(typed), std::move(found)));
}

// Returns true if most of the chapters that have a word and a number, or large
// numbers that count, begin where no section of the outline does, and are three
// or more, and more than it has.
bool MissesChapters(const std::vector<PdfLargeLine>& lines,
                    const std::vector<Section>& outline,
                    const std::vector<Section>& sections) {
  constexpr size_t kNear = 200;  // bytes between a label and its title
  constexpr size_t kFewChapters = 3;
  size_t num_chapters = 0;
  size_t num_named = 0;
  int last_number = 0;
  std::vector<size_t> large;  // places of large lines
  for (const PdfLargeLine& line : lines) large.push_back(line.begin);
  for (const Section& section : sections) {
    const Label label = SplitLabel(section.label);
    if (label.rank == Rank::kNone) continue;
    if (label.rank == Rank::kNumber) {
      const bool is_large =
          std::binary_search(large.begin(), large.end(), section.begin);
      if (!is_large || label.num_parts > 1 || label.number != last_number + 1) {
        continue;
      }
      last_number = label.number;
    }
    ++num_chapters;
    const auto next =
        std::upper_bound(outline.begin(), outline.end(), section.begin,
                         [](size_t begin, const Section& other) {
                           return begin < other.begin + kNear;
                         });
    num_named += static_cast<size_t>(next != outline.end() &&
                                     next->begin < section.begin + kNear);
  }
  return num_chapters >= kFewChapters && num_chapters > outline.size() &&
         num_named * 2 < num_chapters;
}

}  // namespace

std::vector<Heading> HeadingsOfType(const std::vector<PdfLargeLine>& lines,
                                    std::string_view text) {
  std::vector<Run> runs = RunsOf(lines);
  std::erase_if(runs, [](const Run& run) {
    return run.num_lines > kMaxTypedLines || run.text.size() > kMaxTypedBytes ||
           HeadingKey(run.text).empty() || IsDisplay(run);
  });
  size_t num_large = 0;
  for (const PdfLargeLine& line : lines) num_large += line.text.size();
  if (num_large * kLeastShare > text.size()) return {};
  DropRepeated(&runs);
  const bool has_title = DropFront(text, &runs);
  const std::vector<Size> sizes = SizesOf(runs);
  std::vector<Heading> headings;
  for (Run& run : runs) {
    const auto size = std::find_if(
        sizes.begin(), sizes.end(),
        [&](const Size& other) { return AreEqual(SizeOf(run), other); });
    const bool is_title = has_title && headings.empty();
    headings.push_back(
        {is_title ? kLevelOfTitle : static_cast<int>(size - sizes.begin()) + 1,
         std::move(run.text), run.first.begin, ""});
  }
  LevelWords(&headings);
  return headings;
}

std::vector<Section> BestPdfSections(const std::vector<PdfLargeLine>& lines,
                                     std::vector<Section> located,
                                     Document* document) {
  std::vector<Section> sections = SectionsOfText(lines, document->text);
  if (located.size() < 2) return sections;
  if (!MissesChapters(lines, located, sections)) return located;
  document->warnings.push_back(
      "the outline was not used: its " + std::to_string(located.size()) +
      " entries do not name most of the chapters that the text has");
  return sections;
}

}  // namespace tiercel::document
