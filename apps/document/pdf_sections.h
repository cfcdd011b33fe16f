#ifndef TIERCEL_APPS_DOCUMENT_PDF_SECTIONS_H_
#define TIERCEL_APPS_DOCUMENT_PDF_SECTIONS_H_

#include <vector>

#include "apps/document/document.h"
#include "apps/document/pdf_layout.h"

namespace tiercel::document {

// The sections of a PDF's outline in a text with its pages. The outline only
// names pages: a section begins where its title stands on its page, with the
// label before it ("2.1 ", or "CHAPTER" and "TWO" on lines above it), or, where
// no such line is found, where the page begins.
std::vector<Section> LocateOutline(const std::vector<PdfOutlineItem>& outline,
                                   const Document& document);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_PDF_SECTIONS_H_
