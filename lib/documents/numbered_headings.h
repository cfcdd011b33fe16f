#ifndef TIERCEL_LIB_DOCUMENTS_NUMBERED_HEADINGS_H_
#define TIERCEL_LIB_DOCUMENTS_NUMBERED_HEADINGS_H_

#include <vector>

#include "lib/documents/contents_page.h"
#include "lib/documents/outline.h"
#include "lib/documents/text_lines.h"

namespace tiercel::document {

// Headings that begin with a word and a number, those that the tables of
// contents list, and the names of parts without a number; not the lines of a
// table of contents. A title may stand in the block behind its label.
std::vector<Heading> FindNamed(const std::vector<TextLine>& lines,
                               const Contents& contents);

// Headings that begin with a number alone, each one more than that before it,
// in a text whose parts are longer than the items of a list.
std::vector<Heading> FindCounted(const std::vector<TextLine>& lines);

// Headings that are found without a table of contents.
struct Unlisted {
  std::vector<Heading> named;  // as FindNamed has them
  // Named and counted ones together, where they fit: parts that are named, and
  // chapters with a number alone that count within them; or, if they are
  // wanted, chapters that are named and sections that have their numbers
  // ("Chapter 2" and "2.1"). Nothing where one kind is missing.
  std::vector<Heading> joined;
};
Unlisted FindUnlisted(const std::vector<TextLine>& lines, bool with_sections);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_NUMBERED_HEADINGS_H_
