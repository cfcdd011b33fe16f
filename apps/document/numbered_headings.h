#ifndef TIERCEL_APPS_DOCUMENT_NUMBERED_HEADINGS_H_
#define TIERCEL_APPS_DOCUMENT_NUMBERED_HEADINGS_H_

#include <vector>

#include "apps/document/contents_page.h"
#include "apps/document/outline.h"
#include "apps/document/text_lines.h"

namespace tiercel::document {

// Headings that begin with a word and a number, those that the table of
// contents lists, and the names of parts without a number; not the lines of a
// table of contents. A title may stand in the block behind its label.
std::vector<Heading> FindNamed(const std::vector<TextLine>& lines,
                               const ContentsPage& contents);

// Headings that begin with a number alone, each one more than that before it,
// in a text whose parts are longer than the items of a list.
std::vector<Heading> FindCounted(const std::vector<TextLine>& lines);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_NUMBERED_HEADINGS_H_
