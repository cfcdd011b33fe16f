#ifndef TIERCEL_LIB_DOCUMENTS_PDF_HEADINGS_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_HEADINGS_H_

#include <string>
#include <string_view>
#include <vector>

#include "lib/documents/document.h"
#include "lib/documents/outline.h"

namespace tiercel::document {

// A line of the text in larger letters than most of it has.
struct PdfLargeLine {
  size_t page = 0;      // from 0
  size_t page_end = 0;  // end of the page, in bytes of the text
  size_t begin = 0;     // in bytes of the text
  float height = 0;     // its letters', in points
  std::string text;
  bool is_joined = false;  // no other text stands between it and the last one
  bool is_close = false;   // it is the next row behind that one
};

// Returns the headings that large letters show, in their order, each size a
// level. Lines of one size that follow each other are one heading, and so are a
// label and the line behind it. Of the lines of a title page only the largest
// is one, above all others. Nothing where more than a fifth of the text is
// large.
std::vector<Heading> HeadingsOfType(const std::vector<PdfLargeLine>& lines,
                                    std::string_view text);

// The sections of a document that an outline gives (`located`; empty: it has
// none), or those of its large lines and its words, if these are numbered
// chapters most of which the outline does not name; then a warning says so.
std::vector<Section> BestPdfSections(const std::vector<PdfLargeLine>& lines,
                                     std::vector<Section> located,
                                     Document* document);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_HEADINGS_H_
