#ifndef TIERCEL_APPS_DOCUMENT_PDF_MARGINS_H_
#define TIERCEL_APPS_DOCUMENT_PDF_MARGINS_H_

#include <string>
#include <vector>

#include "apps/document/pdf_layout.h"

namespace tiercel::document {

// Drops running heads and page numbers: at the upper or the lower edge of a
// page, what is the page's number, what stands apart from the text and at the
// same height on two pages close by, too, and, where most pages have such a
// line at one height, what stands there and beyond. Returns the number that
// each page bears, or the one it has by its place where it bears none.
std::vector<std::string> DropMargins(std::vector<PdfPage>* pages);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_PDF_MARGINS_H_
