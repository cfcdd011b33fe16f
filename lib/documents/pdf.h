#ifndef TIERCEL_LIB_DOCUMENTS_PDF_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_H_

#include <string>

#include "lib/documents/document.h"

namespace tiercel::document {

// Reads a PDF through poppler's programs, children with limits on memory (2
// GiB), time (2 minutes) and output: `pdftotext` for the text (see pdf_text.h)
// and `pdftohtml` for the outline (see pdf_sections.h); without an outline the
// sections are those that plain text has.
//
// Errors: pdf_tools_missing (a program is not in $PATH), invalid_pdf,
// encrypted_document (a password, or copying text is not allowed),
// scanned_document (pages, but no text), pdf_too_complex (a limit).
Result ReadPdf(const std::string& name, const std::string& bytes);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_H_
