#include "lib/documents/plain_text.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lib/documents/contents_page.h"
#include "lib/documents/gutenberg.h"
#include "lib/documents/labels.h"
#include "lib/documents/numbered_headings.h"
#include "lib/documents/text_lines.h"
#include "lib/documents/underlined_headings.h"

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
