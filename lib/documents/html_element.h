#ifndef TIERCEL_LIB_DOCUMENTS_HTML_ELEMENT_H_
#define TIERCEL_LIB_DOCUMENTS_HTML_ELEMENT_H_

#include <string_view>

#include "gumbo.h"

namespace tiercel::document {

// An element's role in the text.
enum class Role {
  kInline,
  kLine,       // starts on its own line
  kParagraph,  // apart by blank lines
  kHeading,    // likewise
  kList,
  kItem,
  kDefinition,
  kRow,
  kCell,
  kPreformatted,
  kLineBreak,
  kLeftOut,
};

Role RoleOf(GumboTag tag);

// 1 to 6 for a heading, 0 for anything else.
int HeadingLevel(GumboTag tag);

// Returns "" if there is no such attribute.
std::string_view Attribute(const GumboElement& element, const char* name);

// Returns true if `word` is one of the space-separated words of an attribute.
bool HasWord(const GumboElement& element, const char* name,
             std::string_view word);

// Returns true if the element or one of its attributes says that it is no part
// of the text. Sphinx puts a pilcrow behind each heading, as a link to itself,
// and its EPUBs print the address of a link beside it; Project Gutenberg marks
// its frame around a book.
bool IsLeftOut(const GumboElement& element);
bool IsGutenbergFrame(const GumboElement& element);

// Returns true for a reference to a note or a note's own number, which print
// shows raised or in brackets that are not in the page.
bool IsNoteNumber(const GumboElement& element);

// Returns true if a page of the printed book begins here.
bool IsPageBreak(const GumboElement& element);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_HTML_ELEMENT_H_
