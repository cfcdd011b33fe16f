#ifndef TIERCEL_LIB_DOCUMENTS_PLAIN_TEXT_H_
#define TIERCEL_LIB_DOCUMENTS_PLAIN_TEXT_H_

#include <string_view>
#include <vector>

#include "lib/documents/document.h"
#include "lib/documents/outline.h"

namespace tiercel::document {

// Finds the structure of a plain text. Project Gutenberg's frame around it is
// left out, with a warning, and gives title, author and language; so are the
// marks of Aozora Bunko. Headings become sections.
void ReadPlainText(Document* document);

// Returns the headings of a text, in their order, by that of these ways for
// which most speaks: it finds two or more, whose numbers count, and what
// the third finds counts a third:
//
//   1. underlined lines, and lines that begin with '#' (Markdown);
//   2. lines that a table of contents lists; with them, and alone, lines that
//      begin with a word and a number ("Chapter 3", "Часть первая", "第三章")
//      or are the name of a part without one ("Epilogue");
//   3. numbers that count from 1 ("IV", "2.1. Packages");
//   4. the second way and the third together: parts that are named and chapters
//      with a number alone, or chapters that are named and sections with their
//      numbers.
//
// The lines of the table of contents itself are none.
std::vector<Heading> FindHeadings(std::string_view text);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PLAIN_TEXT_H_
