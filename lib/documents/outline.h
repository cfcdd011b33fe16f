#ifndef TIERCEL_LIB_DOCUMENTS_OUTLINE_H_
#define TIERCEL_LIB_DOCUMENTS_OUTLINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "lib/documents/document.h"

namespace tiercel::document {

// A heading as a format declares it.
struct Heading {
  int level;         // any number: a lower one is above
  std::string text;  // with its label, on one line
  size_t begin;      // in bytes of the document's text
  std::string anchor;
};

// Returns the sections that headings begin, in their order. Levels count from 1
// and go down without a gap, and labels are split from titles. Headings without
// a letter or a digit are dropped.
std::vector<Section> SectionsOf(const std::vector<Heading>& headings);

// Returns true if a heading's label ends and its title begins with nothing
// between them but the border of an element, where print has a gap: "1.1" and
// "Mill", but not "C" and "HAPTER", the first letter of which is set larger.
bool AreGlued(std::string_view label, std::string_view title);

// Finishes the sections and pages of a whole document of any format:
//
//   1. a first section that is the book's title and no chapter is no section;
//      where the document has no title it becomes that. It is a title if it
//      repeats the document's, is the only one of its level, or, in a document
//      without a title, has no label where the next of its level has one. What
//      lies in it is lifted, or, where it is not alone, a part of the title
//      page.
//      A first section that is the author's name is none either.
//   2. a table of contents ("Contents") is no section.
//   3. an index at the end (page numbers by keyword) is left out of the text,
//      with a warning.
//   4. an outline that leaves half of a long text in one piece, or divides it
//      into crumbs, is said.
//   5. sections and pages that begin beyond the text are dropped, and all
//      sections, with a warning, where there are more than 100,000.
void FinishOutline(Document* document);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_OUTLINE_H_
