#ifndef TIERCEL_APPS_DOCUMENT_UNDERLINED_HEADINGS_H_
#define TIERCEL_APPS_DOCUMENT_UNDERLINED_HEADINGS_H_

#include <vector>

#include "apps/document/outline.h"
#include "apps/document/text_lines.h"

namespace tiercel::document {

// Headings as markup of plain text has them: a line of one punctuation mark
// below (and above) a title, levels in the order in which marks first appear
// (reStructuredText), or as many '#' before it as its level (Markdown). Marks
// of markup in a title are no part of it.
std::vector<Heading> FindUnderlined(const std::vector<TextLine>& lines);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_UNDERLINED_HEADINGS_H_
