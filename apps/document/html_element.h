#ifndef TIERCEL_APPS_DOCUMENT_HTML_ELEMENT_H_
#define TIERCEL_APPS_DOCUMENT_HTML_ELEMENT_H_

#include <string_view>

#include "gumbo.h"

namespace tiercel::document {

// What an element is to a reader of the text.
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

// 1 to 6 of a heading, 0 of anything else.
int HeadingLevel(GumboTag tag);

// Empty where there is none.
std::string_view Attribute(const GumboElement& element, const char* name);

// Whether the space-separated words of an attribute have `word`.
bool HasWord(const GumboElement& element, const char* name,
             std::string_view word);

// Whether an element or an attribute of it says that this is no part of the
// text. Sphinx's links from a heading to itself are a pilcrow each, and its
// EPUBs print the address of a link beside it; Project Gutenberg's frame around
// a book says what it is.
bool IsLeftOut(const GumboElement& element);
bool IsGutenbergFrame(const GumboElement& element);

// A reference to a note or a note's own number, which print shows raised or in
// brackets that are not in the page.
bool IsNoteNumber(const GumboElement& element);

// Where a page of the printed book begins.
bool IsPageBreak(const GumboElement& element);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_HTML_ELEMENT_H_
