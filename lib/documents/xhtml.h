#ifndef TIERCEL_LIB_DOCUMENTS_XHTML_H_
#define TIERCEL_LIB_DOCUMENTS_XHTML_H_

#include <string>
#include <string_view>

namespace tiercel::document {

// Returns HTML that an HTML parser reads as an XML parser reads `xhtml`, which
// is UTF-8: elements lose the prefix of their namespace, empty ones are ended,
// CDATA is text, and the entities that the page declares are replaced. If the
// page is not well-formed, as many are, its empty elements are ended.
std::string XhtmlAsHtml(std::string_view xhtml);

// Returns a page without the declarations in its document type, which an HTML
// parser takes for text.
std::string WithoutDeclarations(std::string_view page);

// Appends text that HTML reads as it is, in the quotes of an attribute too.
void AppendEscaped(std::string_view text, std::string* html);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_XHTML_H_
