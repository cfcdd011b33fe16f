#ifndef TIERCEL_LIB_DOCUMENTS_HTML_ELEMENT_H_
#define TIERCEL_LIB_DOCUMENTS_HTML_ELEMENT_H_

#include <optional>
#include <string>
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

Role RoleOf(const GumboElement& element);

// 1 to 6 for a heading, 0 for anything else.
int HeadingLevel(const GumboElement& element);

// Returns true for a link that shows a sign alone ("#", "¶"), as headings have
// one to themselves.
bool IsSelfLink(const GumboNode& node);

// Returns what stands before an item of a numbered list, "iv. ", in the style
// that the list or the item declares; "" for none.
std::string ItemMarker(int number, const GumboElement& list,
                       const GumboElement& item);

// Returns the number that an attribute has, if it is one.
std::optional<int> NumberAttribute(const GumboElement& element,
                                   const char* name);

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
bool IsNavigation(const GumboElement& element);
bool IsGutenbergFrame(const GumboElement& element);

// Returns true for an element whose text stands above the line.
bool IsRaised(const GumboElement& element);

// Returns true for a reference to a note or a note's own number, which print
// shows raised or in brackets that are not in the page: it says so, or is a
// link whose text is a note's mark and that is raised, by itself or by an
// element around it (`is_raised`), or leads to a note by its name.
bool IsNoteNumber(const GumboNode& node, bool is_raised);

// Returns true for such a number in a heading, of which it is no part.
bool IsNoteMark(const GumboNode& node);

// The number of a page of the printed book that begins at an element: as EPUB
// and Project Gutenberg mark it.
struct PageMark {
  std::string number;  // empty if it is not known
  bool is_text;        // the element's text is the number, no part of the book
};
std::optional<PageMark> PageMarkOf(const GumboNode& node);

// Returns the text that an element stands for: a formula, the image of a
// letter, or any image in a heading without text. Empty for others.
std::string_view AlternativeText(const GumboNode& node, bool is_heading);

// Returns the sign before a part of a formula that is not its first: "/" in a
// fraction, "^" before a power, "_" before an index; "" in other elements.
std::string_view SignBefore(int part, const GumboElement& element);
// Returns true for a part of a formula that has several, as "a+b".
bool IsGroup(const GumboElement& element);

// Returns the text of a node, each block behind a line feed.
std::string TextInLines(const GumboNode& node);

// Returns true for a node of text or white space.
bool IsText(const GumboNode& node);
// Returns the text within a node if it has at most `most` bytes.
std::optional<std::string> ShortText(const GumboNode& node, size_t most);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_HTML_ELEMENT_H_
