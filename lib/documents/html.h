#ifndef TIERCEL_LIB_DOCUMENTS_HTML_H_
#define TIERCEL_LIB_DOCUMENTS_HTML_H_

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/documents/document.h"
#include "lib/documents/outline.h"

namespace tiercel::document {

// A link in a page's text.
struct HtmlLink {
  std::string href;
  int depth;  // the number of lists around it
};

// A page as a person reads it, and the places in it that links can point to.
struct HtmlPage {
  std::string text;
  std::string title;  // title, author, language: empty if there is none
  std::string author;
  std::string language;
  std::vector<Heading> headings;  // levels 1 to 6
  std::vector<Page> pages;  // pages of the printed book, where they are marked
  std::vector<HtmlLink> links;      // in the order of the text
  std::vector<HtmlLink> nav_links;  // in navigation, which is no text
  std::vector<std::string> frames;  // links of a frame set, which has no text
  std::unordered_map<std::string, size_t> anchors;  // places in the text
  size_t num_controls = 0;  // control characters that became spaces
  bool had_frame = false;   // Project Gutenberg's, which was left out
  std::string frame;        // its text (TextInLines)
};

// The text has blank lines between paragraphs and around headings, list items
// begin with "- " or a number, " | " stands between cells, "[1]" is a reference
// to a note, preformatted text is kept as it is, and all other white space is
// collapsed. Scripts, styles, navigation, readings beside Chinese characters,
// numbers of printed pages and hidden elements are left out. The image of a
// letter is the letter, and that of a heading its words; a heading has no marks
// of notes.
//
// `html` is UTF-8. Returns nothing if the page would take more memory or time
// than any real page of its size (by deep nesting or misnested tags), or more
// than 256 MiB of memory.
std::optional<HtmlPage> ReadHtmlPage(std::string_view html);

// Makes a page a document of its own. Warnings are appended.
void FillFrom(HtmlPage page, Document* document);

// Appends to the document's warnings what was replaced or left out in its
// pages.
void WarnOf(size_t num_controls, bool had_frame, Document* document);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_HTML_H_
