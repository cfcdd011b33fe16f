// Reads the input as the output of poppler's programs for a PDF: the layout,
// and behind a line of "----" the outline.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lib/documents/outline.h"
#include "lib/documents/pdf_geometry.h"
#include "lib/documents/pdf_headings.h"
#include "lib/documents/pdf_labels.h"
#include "lib/documents/pdf_layout.h"
#include "lib/documents/pdf_margins.h"
#include "lib/documents/pdf_sections.h"
#include "lib/documents/pdf_text.h"
#include "tests/fuzz/document_promises.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiercel::document;  // NOLINT: all of this is about it
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const size_t border = std::min(bytes.find("\n----\n"), bytes.size());
  PdfLayoutReader reader;
  reader.Add(bytes.substr(0, border / 2));
  reader.Add(bytes.substr(border / 2, border - border / 2));
  std::vector<PdfPage> pages = reader.TakePages();
  const std::vector<PdfOutlineItem> outline =
      ReadPdfOutline(ValidUtf8(bytes.substr(border)));
  std::set<size_t> chapters;
  for (const PdfOutlineItem& item : outline) {
    if (item.page.has_value()) chapters.insert(*item.page);
  }
  Document document;
  StraightenPages(&pages);
  const std::vector<std::string> numbers = DropMargins(outline, &pages);
  PdfPageLabels(bytes, pages.size());
  const std::vector<PdfLargeLine> large =
      WritePdfText(pages, numbers, chapters, &document);
  std::vector<Section> located = LocateOutline(outline, &document);
  document.sections = BestPdfSections(large, std::move(located), &document);
  FinishOutline(&document);
  CheckPromises(document);
  return 0;
}
