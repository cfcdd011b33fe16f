#ifndef TIERCEL_LIB_DOCUMENTS_UNDERLINED_HEADINGS_H_
#define TIERCEL_LIB_DOCUMENTS_UNDERLINED_HEADINGS_H_

#include <vector>

#include "lib/documents/outline.h"
#include "lib/documents/text_lines.h"

namespace tiercel::document {

// Returns the headings marked as in plain-text markup: a line of one
// punctuation mark below (and above) a title, with levels in the order in which
// marks first appear (reStructuredText), or '#' before it, as many as its level
// (Markdown). Markup within a title is removed.
std::vector<Heading> FindUnderlined(const std::vector<TextLine>& lines);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_UNDERLINED_HEADINGS_H_
