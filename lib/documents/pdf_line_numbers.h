#ifndef TIERCEL_LIB_DOCUMENTS_PDF_LINE_NUMBERS_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_LINE_NUMBERS_H_

#include <vector>

#include "lib/documents/pdf_layout.h"

namespace tiercel::document {

// Drops the numbers that count the lines of each page, as drafts, records of
// courts and poems have them beside the text: a column of numbers, outside the
// text, that count evenly (by 1, 2, 5 or 10) along most of the lines of most
// pages. Beside lists nothing is dropped: where each line has a number, most
// lines reach the right edge of the text and end within a sentence, or the
// count begins anew with each page. The lines that the numbers parted become
// blocks again.
void DropLineNumbers(std::vector<PdfPage>* pages);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_LINE_NUMBERS_H_
