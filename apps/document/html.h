#ifndef TIERCEL_APPS_DOCUMENT_HTML_H_
#define TIERCEL_APPS_DOCUMENT_HTML_H_

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apps/document/document.h"
#include "apps/document/outline.h"

namespace tiercel::document {

// A page as a person reads it, and what can be pointed to in it.
struct HtmlPage {
  std::string text;
  std::string title;  // these three: empty where it has none
  std::string author;
  std::string language;
  std::vector<Heading> headings;   // levels 1 to 6
  std::vector<Page> pages;         // of a printed book, where they are marked
  std::vector<std::string> links;  // out of the text, in their order
  std::unordered_map<std::string, size_t> anchors;  // places in the text
  size_t num_controls = 0;  // control characters that became spaces
  bool had_frame = false;   // Project Gutenberg's, which was left out
};

// The text has paragraphs and headings apart by blank lines, "- " or "1. "
// before list items, " | " between cells, "[1]" for references to notes,
// preformatted text as it is, all other white space collapsed. Scripts, styles,
// navigation, readings beside Chinese characters and what is hidden are left
// out.
//
// `html` is UTF-8. Nothing where the page would take more memory or time than
// any real one of its size (pages made to: deep nesting, misnested tags), or
// more than 256 MiB of memory.
std::optional<HtmlPage> ReadHtmlPage(std::string_view html);

// A page as a document of its own. Warnings are added to.
void FillFrom(HtmlPage page, Document* document);

// XHTML as a reader of HTML takes it: "<p/>" becomes "<p></p>", which HTML
// would take for a paragraph's beginning.
std::string XhtmlAsHtml(std::string_view xhtml);

// What Document::warnings says of pages that were read.
void WarnOf(size_t num_controls, bool had_frame, Document* document);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_HTML_H_
