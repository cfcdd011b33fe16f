#ifndef TIERCEL_LIB_DOCUMENTS_PDF_LAYOUT_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_LAYOUT_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// The output of `pdftotext -bbox-layout`: the box of each word, in points from
// the left and the top of its page, in the order of reading.
struct PdfBox {
  float left = 0;
  float top = 0;
  float right = 0;
  float bottom = 0;
  float height() const { return bottom - top; }
};

struct PdfWord {
  PdfBox box;
  std::string text;
};

struct PdfLine {
  PdfBox box;
  std::vector<PdfWord> words;
};

struct PdfBlock {
  PdfBox box;
  float column_right;  // right edge of its column
  std::vector<PdfLine> lines;
};

struct PdfPage {
  float width;
  float height;
  std::vector<PdfBlock> blocks;
};

// Calls `change` with every box of a page.
void ForEachBox(PdfPage* page, const std::function<void(PdfBox*)>& change);
// Sets the right edges of columns anew, from those of their blocks.
void WidenColumns(PdfPage* page);
// Joins blocks that the program which read the page has parted: one that begins
// a row below the end of that before it, in the same print.
void JoinPartedBlocks(PdfPage* page);

// Erases lines without words, and blocks without lines.
void EraseEmpty(PdfPage* page);
// Returns the middle one of some sizes; 0 if there are none.
float MedianOf(std::vector<float> sizes);

// The usual height of the letters of a line, and of all pages.
float LetterHeight(const PdfLine& line);
float BodyHeight(const std::vector<PdfPage>& pages);

// Returns true for a number of three digits at most, as notes have.
bool IsNoteNumber(std::string_view text);
// Returns true for a word of the line that is smaller than others, and above
// their feet.
bool IsRaised(const PdfWord& word, const PdfLine& line);
// Returns true for a number of a note that is raised: it refers to one, or
// begins it.
bool IsRaisedNumber(const PdfWord& word, const PdfLine& line);
// Returns true for a line that ends with the end of a sentence.
bool EndsSentence(const PdfLine& line);

// Returns true if the first word of the next line would have found room on a
// line whose column ends at `right`.
bool HasRoomFor(const PdfLine& next, const PdfLine& line, float right);

// Parses that output as it arrives, a page at a time.
class PdfLayoutReader {
 public:
  void Add(std::string_view bytes);

  // Returns true once the end of the output has come.
  bool whole() const { return pending_.find("</html>") != std::string::npos; }
  std::vector<PdfPage> TakePages() { return std::move(pages_); }
  const std::string& title() const { return title_; }
  const std::string& author() const { return author_; }

 private:
  void ReadHead(std::string_view xml);
  void ReadPage(std::string_view xml);

  std::string pending_;
  std::vector<PdfPage> pages_;
  std::string title_;
  std::string author_;
};

// An entry of a PDF's outline.
struct PdfOutlineItem {
  int level;                   // from 1
  std::optional<size_t> page;  // from 0; absent if it leads nowhere
  std::string text;
};

// The outline in what `pdftohtml -xml` writes; empty where there is none.
std::vector<PdfOutlineItem> ReadPdfOutline(std::string_view xml);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_LAYOUT_H_
