#ifndef TIERCEL_APPS_DOCUMENT_HTML_H_
#define TIERCEL_APPS_DOCUMENT_HTML_H_

#include <string>
#include <string_view>

#include "apps/document/document.h"

namespace tiercel::document {

// The charset that a <meta> in the first 1024 bytes or an XML declaration
// names; empty where there is none.
std::string DeclaredCharset(std::string_view bytes);

// Fills text and title with what a person reads on the page: paragraphs and
// headings apart by blank lines, "- " or "1. " before list items, " | " between
// cells, preformatted text as it is, all other white space collapsed. Scripts,
// styles, navigation and what is hidden are left out.
//
// `html` is UTF-8. False where the page would take more memory or time than any
// real one of its size (pages made to: deep nesting, misnested tags), or more
// than 256 MiB of memory.
bool ReadHtml(std::string_view html, Document* document);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_HTML_H_
