#ifndef TIERCEL_LIB_DOCUMENTS_PDF_TEXT_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_TEXT_H_

#include <set>
#include <string>
#include <vector>

#include "lib/documents/document.h"
#include "lib/documents/pdf_headings.h"
#include "lib/documents/pdf_layout.h"

namespace tiercel::document {

// Fills the text and the pages of a document from pages without margins, which
// have these numbers.
//
// A block is a paragraph, and goes on over a page's end where its sentence
// does. Lines are joined, but where the next word would have found room on its
// line: there the break was meant. A word that was broken at a line's end is
// joined, with its hyphen where the document writes it so elsewhere. Notes at
// the foot of a page ("[1] ...") stand before the first page of `chapters`
// (numbers from 0) that follows, or at the end, and references to them are
// "[1]". Returns the lines of the body in large letters, in their order.
std::vector<PdfLargeLine> WritePdfText(const std::vector<PdfPage>& pages,
                                       const std::vector<std::string>& numbers,
                                       const std::set<size_t>& chapters,
                                       Document* document);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_TEXT_H_
