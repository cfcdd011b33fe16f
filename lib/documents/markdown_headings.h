#ifndef TIERCEL_LIB_DOCUMENTS_MARKDOWN_HEADINGS_H_
#define TIERCEL_LIB_DOCUMENTS_MARKDOWN_HEADINGS_H_

#include <vector>

#include "lib/documents/outline.h"
#include "lib/documents/text_lines.h"

namespace tiercel::document {

// A heading of Markdown with a line of "=" or "-" below it.
struct SetextHeading {
  size_t line;
  int level;
};

// Returns the headings of a text in Markdown, with '#' before them and among
// `underlined`, in their order and without the markup of their words; none if
// fewer than two lines are headings with '#' for certain. A comment among the
// lines of a program is no heading.
std::vector<Heading> FindMarkdown(const std::vector<TextLine>& lines,
                                  const std::vector<SetextHeading>& underlined);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_MARKDOWN_HEADINGS_H_
