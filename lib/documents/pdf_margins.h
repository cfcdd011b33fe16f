#ifndef TIERCEL_LIB_DOCUMENTS_PDF_MARGINS_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_MARGINS_H_

#include <string>
#include <vector>

#include "lib/documents/pdf_layout.h"

namespace tiercel::document {

// Drops running heads and page numbers at the upper and lower edges of pages:
// the page's number; lines apart from the text that stand at the same height on
// two pages close by, too; and, if most pages have such a line at one height,
// all lines there and beyond. Lines in large type, titles that the outline
// names and notes are text. Returns the number of each page: the printed one,
// or else the one that follows from its place.
std::vector<std::string> DropMargins(const std::vector<PdfOutlineItem>& outline,
                                     std::vector<PdfPage>* pages);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_MARGINS_H_
