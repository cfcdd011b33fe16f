#include "lib/documents/plain_text.h"

#include <algorithm>
#include <string>
#include <unordered_map>
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

// Returns how much speaks for an outline. A heading counts once; one whose
// number follows on that of the heading before it of its kind counts once more,
// since lines that are no headings seldom count.
size_t EvidenceFor(const std::vector<Heading>& headings) {
  size_t evidence = headings.size();
  std::unordered_map<int, int> last;  // numbers, by kind
  for (const Heading& heading : headings) {
    const Label label = SplitLabel(heading.text);
    if (label.rank == Rank::kNone) continue;
    const int kind = static_cast<int>(label.rank) * 16 + label.num_parts;
    const auto [before, is_new] = last.emplace(kind, 0);
    if (label.number == before->second + 1 || label.number == 1) ++evidence;
    before->second = label.number;
  }
  return evidence;
}

// Returns the headings that are no lines of a table of contents.
std::vector<Heading> WithoutTables(const std::vector<TextLine>& lines,
                                   const Contents& contents,
                                   std::vector<Heading> headings) {
  for (const ContentsPage& page : contents.pages) {
    const size_t begin = lines[page.first_line].begin;
    const size_t end = page.end_line < lines.size() ? lines[page.end_line].begin
                                                    : std::string::npos;
    std::erase_if(headings, [&](const Heading& heading) {
      return heading.begin >= begin && heading.begin < end;
    });
  }
  return headings;
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
  // A bare number may count anything.
  constexpr size_t kWorthOfMark = 3;
  struct Proposal {
    std::vector<Heading> headings;
    size_t worth;
  };
  const Contents contents = FindContents(lines);
  std::vector<Proposal> proposals;
  proposals.push_back({FindUnderlined(lines), kWorthOfMark});
  proposals.push_back({FindNamed(lines, contents), kWorthOfMark});
  proposals.push_back({FindCounted(lines), 1});
  if (!contents.pages.empty()) {
    std::vector<Heading> without =
        WithoutTables(lines, contents, FindNamed(lines, Contents()));
    // Behind a numbered heading they may be those of one chapter or volume.
    const size_t first_line = contents.pages.front().first_line;
    if (HasNumberBefore(without, lines[first_line].begin)) {
      proposals.push_back({std::move(without), kWorthOfMark});
    }
  }
  std::vector<Heading> best;
  size_t most = 0;
  for (Proposal& proposal : proposals) {
    const size_t evidence = EvidenceFor(proposal.headings) * proposal.worth;
    if (proposal.headings.size() < 2 || evidence <= most) continue;
    most = evidence;
    best = std::move(proposal.headings);
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
