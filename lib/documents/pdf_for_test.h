#ifndef TIERCEL_LIB_DOCUMENTS_PDF_FOR_TEST_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_FOR_TEST_H_

#include <string>
#include <utility>
#include <vector>

namespace tiercel::document {

// A line of text in a PDF: from the left and the bottom of its page, in points.
struct PdfTestLine {
  int left;
  int bottom;
  std::string text;  // ASCII, without parentheses
  double size = 10;
  bool is_turned = false;  // it goes up the page
};

struct PdfTestItem {
  std::string title;
  size_t page;  // from 0
};

// Returns a PDF of these pages, 612 by 792 points, in Courier: each letter is
// 0.6 times the size wide.
inline std::string PdfOf(const std::vector<std::vector<PdfTestLine>>& pages,
                         const std::vector<PdfTestItem>& outline = {},
                         const std::string& trailer = "") {
  std::vector<std::string> objects(4);  // from 1: catalog, pages, font, outline
  const auto reference = [](size_t object) {
    return std::to_string(object) + " 0 R";
  };
  std::vector<size_t> page_objects;
  std::string kids;
  for (const std::vector<PdfTestLine>& lines : pages) {
    std::string content;
    for (const PdfTestLine& line : lines) {
      content += "BT /F " + std::to_string(line.size) + " Tf " +
                 (line.is_turned ? "0 1 -1 0 " : "1 0 0 1 ") +
                 std::to_string(line.left) + " " + std::to_string(line.bottom) +
                 " Tm (" + line.text + ") Tj ET\n";
    }
    objects.push_back("<< /Length " + std::to_string(content.size()) +
                      " >>\nstream\n" + content + "endstream");
    objects.push_back(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
        "/Resources << /Font << /F 3 0 R >> >> /Contents " +
        reference(objects.size()) + " >>");
    page_objects.push_back(objects.size());
    kids += reference(objects.size()) + " ";
  }
  objects[0] = "<< /Type /Catalog /Pages 2 0 R";
  if (!outline.empty()) objects[0] += " /Outlines 4 0 R";
  objects[0] += " >>";
  objects[1] = "<< /Type /Pages /Kids [" + kids + "] /Count " +
               std::to_string(pages.size()) + " >>";
  objects[2] = "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>";
  objects[3] = "<< >>";
  if (!outline.empty()) {
    const size_t first = objects.size() + 1;
    const size_t last = objects.size() + outline.size();
    objects[3] = "<< /Type /Outlines /First " + reference(first) + " /Last " +
                 reference(last) + " >>";
    for (const PdfTestItem& item : outline) {
      const size_t self = objects.size() + 1;
      objects.push_back("<< /Title (" + item.title + ") /Parent 4 0 R /Dest [" +
                        reference(page_objects[item.page]) + " /Fit]" +
                        (self > first ? " /Prev " + reference(self - 1) : "") +
                        (self < last ? " /Next " + reference(self + 1) : "") +
                        " >>");
    }
  }
  std::string pdf = "%PDF-1.4\n";
  std::string table;
  for (size_t i = 0; i < objects.size(); ++i) {
    std::string offset = std::to_string(pdf.size());
    offset.insert(0, 10 - offset.size(), '0');
    table += offset + " 00000 n \n";
    pdf += std::to_string(i + 1) + " 0 obj\n" + objects[i] + "\nendobj\n";
  }
  const std::string size = std::to_string(objects.size() + 1);
  const std::string start = std::to_string(pdf.size());
  return pdf + "xref\n0 " + size + "\n0000000000 65535 f \n" + table +
         "trailer\n<< /Size " + size + " /Root 1 0 R " + trailer +
         " >>\nstartxref\n" + start + "\n%%EOF\n";
}

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_FOR_TEST_H_
