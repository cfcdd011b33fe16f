#ifndef TIERCEL_LIB_DOCUMENTS_PDF_LABELS_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_LABELS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// Returns the label of each page ("iv", "A-3") that a PDF's catalog gives it
// (/PageLabels; ISO 32000-1, 12.4.2), of `num_pages`. Empty if the file has
// none, is encrypted, or is not understood: poppler's programs do not tell
// them.
std::vector<std::string> PdfPageLabels(std::string_view pdf, size_t num_pages);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_LABELS_H_
