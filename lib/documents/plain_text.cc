#include "lib/documents/plain_text.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lib/documents/aozora.h"
#include "lib/documents/contents_page.h"
#include "lib/documents/gutenberg.h"
#include "lib/documents/labels.h"
#include "lib/documents/numbered_headings.h"
#include "lib/documents/text_lines.h"
#include "lib/documents/underlined_headings.h"

namespace tiercel::document {

namespace {

// A bare number may count anything.
constexpr size_t kWorthOfMark = 3;

// Returns how much speaks for an outline. A heading counts as much as its
// worth; one whose number follows on that of the heading before it of its kind
// counts once more, since lines that are no headings seldom count.
template <typename Worth>  // a function of a heading and its rank
size_t EvidenceFor(const std::vector<Heading>& headings, Worth worth_of) {
  size_t evidence = 0;
  std::unordered_map<int, int> last;  // numbers, by kind
  for (const Heading& heading : headings) {
    const Label label = SplitLabel(heading.text);
    const size_t worth = worth_of(heading, label.rank);
    evidence += worth;
    if (label.rank == Rank::kNone) continue;
    const int kind = static_cast<int>(label.rank) * 16 + label.num_parts;
    const auto [before, is_new] = last.emplace(kind, 0);
    if (label.number == before->second + 1 || label.number == 1) {
      evidence += worth;
    }
    before->second = label.number;
  }
  return evidence;
}

// Returns the headings that are no lines of a table of contents.
std::vector<Heading> WithoutTables(const std::vector<TextLine>& lines,
                                   const Contents& contents,
                                   std::vector<Heading> headings) {
  std::erase_if(headings, [&](const Heading& heading) {
    return IsInTable(lines, contents, heading.begin);
  });
  return headings;
}

// Returns true if bare numbers run through chapters that are named and counted
// themselves: then they are those of pages or paragraphs.
bool RunThrough(const std::vector<Heading>& numbers,
                const std::vector<Heading>& named) {
  constexpr int kFewChapters = 3;
  size_t first = 0;
  size_t last = 0;
  int count = 0;
  for (const Heading& heading : named) {
    const Label label = SplitLabel(heading.text);
    if (label.rank != Rank::kChapter || label.number != count + 1) continue;
    if (++count == 1) first = heading.begin;
    last = heading.begin;
  }
  const auto num_bare = static_cast<size_t>(std::count_if(
      numbers.begin(), numbers.end(), [&](const Heading& heading) {
        return heading.begin > first && heading.begin < last &&
               SplitLabel(heading.text).title.empty();
      }));
  return count >= kFewChapters && num_bare * 2 >= numbers.size();
}

// Returns true if `headings` have all that `listed` has.
bool HaveAll(const std::vector<Heading>& headings,
             const std::unordered_set<size_t>& listed) {
  const auto num_listed = std::count_if(
      headings.begin(), headings.end(),
      [&](const Heading& heading) { return listed.count(heading.begin) > 0; });
  return static_cast<size_t>(num_listed) == listed.size();
}

bool HasNumberBefore(const std::vector<Heading>& headings, size_t place) {
  return std::any_of(headings.begin(), headings.end(),
                     [place](const Heading& heading) {
                       return heading.begin < place &&
                              SplitLabel(heading.text).rank != Rank::kNone;
                     });
}

}  // namespace

std::vector<Heading> FindHeadings(std::string_view text) {
  const std::vector<TextLine> lines = LinesOf(text);
  const Contents contents = FindContents(lines);
  std::unordered_set<size_t> listed;  // places
  for (const size_t line : contents.headings) listed.insert(lines[line].begin);
  std::vector<Heading> best;
  size_t most = 0;
  const auto propose = [&](std::vector<Heading> headings, auto worth_of) {
    const size_t evidence = EvidenceFor(headings, worth_of);
    if (headings.size() < 2 || evidence <= most) return;
    most = evidence;
    best = std::move(headings);
  };
  const auto marked = [](const Heading&, Rank) { return kWorthOfMark; };
  propose(FindUnderlined(lines), marked);
  // Behind a numbered heading they may be those of one chapter or volume.
  const auto is_of_part = [&](const std::vector<Heading>& numbered) {
    return HasNumberBefore(numbered,
                           lines[contents.pages.front().first_line].begin);
  };
  const bool is_complete =
      std::any_of(contents.pages.begin(), contents.pages.end(),
                  [](const ContentsPage& page) { return page.is_complete; });
  Unlisted unlisted = FindUnlisted(lines, /*with_sections=*/!is_complete);
  std::vector<Heading> without =
      WithoutTables(lines, contents, std::move(unlisted.named));
  const bool has_named = !without.empty();
  const std::vector<Heading> named =
      contents.pages.empty() ? without : FindNamed(lines, contents);
  propose(named, marked);
  std::vector<Heading> counted = FindCounted(lines);
  // Bare numbers below titles that are listed are parts of what these begin.
  const bool is_below =
      is_complete && !HaveAll(counted, listed) && !is_of_part(counted);
  if (!is_below && !RunThrough(counted, named)) {
    propose(std::move(counted), [](const Heading&, Rank) { return size_t{1}; });
  }
  if (!contents.pages.empty() && is_of_part(without)) {
    propose(std::move(without), marked);
  }
  if (!has_named) return best;
  std::vector<Heading> joined =
      WithoutTables(lines, contents, std::move(unlisted.joined));
  if (HaveAll(joined, listed)) {
    propose(std::move(joined), [&](const Heading& heading, Rank rank) {
      const bool is_bare =
          rank == Rank::kNumber && listed.count(heading.begin) == 0;
      return is_bare ? size_t{1} : kWorthOfMark;
    });
  }
  return best;
}

void ReadPlainText(Document* document) {
  LeaveOutGutenbergFrame(document);
  const std::vector<Heading> declared = ReadAozora(document);
  document->sections =
      SectionsOf(declared.empty() ? FindHeadings(document->text) : declared);
}

}  // namespace tiercel::document
