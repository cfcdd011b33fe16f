#include "lib/documents/plain_text.h"

#include <string>
#include <unordered_map>
#include <utility>

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

}  // namespace

std::vector<Heading> FindHeadings(std::string_view text) {
  const std::vector<TextLine> lines = LinesOf(text);
  // A bare number may count anything.
  constexpr size_t kWorthOfMark = 3;
  struct Proposal {
    std::vector<Heading> headings;
    size_t worth;
  };
  Proposal proposals[] = {{FindUnderlined(lines), kWorthOfMark},
                          {FindNamed(lines, FindContents(lines)), kWorthOfMark},
                          {FindCounted(lines), 1}};
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
