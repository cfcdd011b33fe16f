#ifndef TIERCEL_LIB_DOCUMENTS_PAGE_H_
#define TIERCEL_LIB_DOCUMENTS_PAGE_H_

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/documents/document.h"
#include "lib/documents/html.h"

namespace tiercel::document {

// Reads the page in the bytes of an HTML or XHTML file, in any charset: that
// with the label `charset`, if it is given from elsewhere, else the one that
// the page declares. Errors, which call it `name`: html_too_complex;
// document_too_large.
std::variant<HtmlPage, Error> ReadPageBytes(const std::string& name,
                                            std::string_view bytes,
                                            std::vector<std::string>* warnings,
                                            std::string_view charset = {});

// Returns not_text if the bytes are neither text nor a page.
std::optional<Error> CheckText(const std::string& name, std::string_view bytes);

// Reads a text as document.h does: in the charset of its byte order mark, in
// that with the label `charset`, or as it is guessed.
Result ReadTextBytes(const std::string& name, std::string_view bytes,
                     std::string_view charset = {});

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PAGE_H_
