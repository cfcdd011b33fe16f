#include "apps/document/plain_text.h"

#include <algorithm>
#include <string>
#include <utility>

#include "apps/document/contents_page.h"
#include "apps/document/gutenberg.h"
#include "apps/document/labels.h"
#include "apps/document/numbered_headings.h"
#include "apps/document/text_lines.h"
#include "apps/document/underlined_headings.h"

namespace tiercel::document {

std::vector<Heading> FindHeadings(std::string_view text) {
  const std::vector<TextLine> lines = LinesOf(text);
  std::vector<Heading> headings = FindUnderlined(lines);
  if (headings.size() > 1) return headings;
  const ContentsPage contents = FindContents(lines);
  headings = FindNamed(lines, contents);
  if (headings.size() > 1) return headings;
  return FindCounted(lines);
}

void ReadPlainText(Document* document) {
  LeaveOutGutenbergFrame(document);
  document->sections = SectionsOf(FindHeadings(document->text));
}

}  // namespace tiercel::document
