#ifndef TIERCEL_LIB_DOCUMENTS_PDF_GEOMETRY_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_GEOMETRY_H_

#include <vector>

#include "lib/documents/pdf_layout.h"

namespace tiercel::document {

// Puts the boxes of each page as its reader sees them, so that text goes from
// left to right and from top to bottom:
//
//   turned text (a table on its side) is turned back, and so is a turned line
//   at the edge of a page, unless three pages have it: then it is left out;
//   numbers that count lines are left out (DropLineNumbers);
//   readings of Japanese words, in small print above them, are left out;
//   lines in Hebrew or Arabic get the order in which they are read
//   (ReadFromRight);
//   a large letter over several lines (a drop cap) joins the word it begins;
//   a raised number that stands alone joins the line that it begins.
void StraightenPages(std::vector<PdfPage>* pages);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_GEOMETRY_H_
