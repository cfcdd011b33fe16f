#ifndef TIERCEL_LIB_DOCUMENTS_PDF_RIGHT_TO_LEFT_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_RIGHT_TO_LEFT_H_

#include "lib/documents/pdf_layout.h"

namespace tiercel::document {

// Puts lines of Hebrew or Arabic, and words of these within other lines, whose
// letters stand in the order of their places, into the order in which they are
// read. A page with more of such letters than of others is mirrored; on any
// other the boxes of such words are mirrored within their line.
void ReadFromRight(PdfPage* page);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_RIGHT_TO_LEFT_H_
