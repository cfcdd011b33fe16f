#ifndef TIERCEL_APPS_DOCUMENT_TEXT_WRITER_H_
#define TIERCEL_APPS_DOCUMENT_TEXT_WRITER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// Builds the text of a document: collapses white space, keeps lines and
// paragraphs apart by no more than was asked for, and says where each mark came
// to lie. The text is valid UTF-8 whatever comes in, and has no control
// characters but tabs and line feeds.
class TextWriter {
 public:
  // Text whose white space does not count.
  void Words(std::string_view text);
  // Text whose white space counts.
  void Preformatted(std::string_view text);

  // What follows starts on a new line (1) or after a blank one (2).
  void Break(int newlines);
  // One more line end, however many there are.
  void Line();

  // Written before the next text, which starts a line.
  void SetMarker(std::string marker) { marker_ = std::move(marker); }
  void DropMarker() { marker_.clear(); }
  void Indent(int columns) { indent_ += columns; }

  // The number of a mark that stands before the next character, whenever that
  // comes: behind the line ends, and behind a marker.
  size_t Mark();
  // Where each mark stands, in bytes of the text. A mark that nothing follows
  // stands at the end.
  std::vector<size_t> Marks() const;

  // Everything written so far, and how much that is.
  const std::string& text() const { return text_; }
  // Ends the text with a line feed. Nothing is written after it.
  std::string Take();

  // Control characters that became spaces, and bytes that were no UTF-8.
  size_t num_controls() const { return num_controls_; }

 private:
  void CleanWords(std::string_view text);
  void CleanPreformatted(std::string_view text);
  // The line end of a page between two Chinese characters is no space.
  void DropSpaceBefore(std::string_view text, size_t at);
  std::string Clean(std::string_view text);
  // Whether `text` may be written as it is.
  static bool IsClean(std::string_view text);
  // The line ends owed, and a space.
  void StartText();

  std::string text_;
  std::string marker_;
  std::vector<size_t> marks_;
  size_t num_placed_ = 0;  // marks that have a place
  size_t num_controls_ = 0;
  int newlines_ = 0;                 // owed before the next text
  bool preformatted_break_ = false;  // those newlines are the page's own
  bool space_ = false;               // owed before the next word
  bool line_end_ = false;            // it was one of the page's source
  bool at_line_start_ = true;
  int indent_ = 0;
};

bool IsSpace(char c);

// `text` on one line: white space collapsed, none at either end.
std::string OneLine(std::string_view text);

}  // namespace tiercel::document

#endif  // TIERCEL_APPS_DOCUMENT_TEXT_WRITER_H_
