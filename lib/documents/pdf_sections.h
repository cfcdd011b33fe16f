#ifndef TIERCEL_LIB_DOCUMENTS_PDF_SECTIONS_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_SECTIONS_H_

#include <vector>

#include "lib/documents/document.h"
#include "lib/documents/pdf_layout.h"

namespace tiercel::document {

// The sections of a PDF's outline in a text with its pages. The outline only
// names pages: a section begins where its title stands on its page, with the
// label before it ("2.1 ", or "CHAPTER" and "TWO" on lines above it), or, where
// no such line is found, where the page begins. An item that leads nowhere
// begins where its title stands between its neighbours, or is left out with a
// warning.
std::vector<Section> LocateOutline(const std::vector<PdfOutlineItem>& outline,
                                   Document* document);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_SECTIONS_H_
