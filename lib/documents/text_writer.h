#ifndef TIERCEL_LIB_DOCUMENTS_TEXT_WRITER_H_
#define TIERCEL_LIB_DOCUMENTS_TEXT_WRITER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::document {

// Builds the text of a document: collapses white space, keeps lines and
// paragraphs apart by no more than was asked for, and records the position of
// each mark. The text is valid UTF-8 whatever comes in, and its only control
// characters are tabs and line feeds.
class TextWriter {
 public:
  // Writes text whose white space is collapsed.
  void Words(std::string_view text);
  // Writes text whose white space is kept.
  void Preformatted(std::string_view text);

  // Makes the next text start on a new line (1) or after a blank line (2).
  void Break(int newlines);
  // Adds one more line end, however many there are.
  void Line();

  // Sets a marker that is written before the next text, at the start of a line.
  void SetMarker(std::string marker) { marker_ = std::move(marker); }
  void DropMarker() { marker_.clear(); }
  void Indent(int columns) { indent_ += columns; }

  // Sets a mark before the next character that is written, behind any line ends
  // and marker, and returns its number.
  size_t Mark();
  // Returns the position of each mark, in bytes of the text. A mark that
  // nothing follows is at the end.
  std::vector<size_t> Marks() const;

  // Returns true if a blank or a line end comes before the next word.
  bool is_apart() const { return space_ || newlines_ > 0; }

  // All text written so far.
  const std::string& text() const { return text_; }
  // Ends the text with a line feed and returns it. Nothing may be written after
  // it.
  std::string Take();

  // The number of control characters that became spaces, and of bytes that were
  // not UTF-8.
  size_t num_controls() const { return num_controls_; }

 private:
  void CleanWords(std::string_view text);
  void CleanPreformatted(std::string_view text);
  // Drops the space of a line end in the source between two Chinese characters,
  // which is no space.
  void DropSpaceBefore(std::string_view text, size_t at);
  std::string Clean(std::string_view text);
  // Returns true if `text` may be written as it is.
  static bool IsClean(std::string_view text);
  // Writes the line ends and the space that are owed.
  void StartText();

  std::string text_;
  std::string marker_;
  std::vector<size_t> marks_;
  size_t num_placed_ = 0;  // marks that have a place
  size_t num_controls_ = 0;
  int newlines_ = 0;                 // owed before the next text
  bool preformatted_break_ = false;  // the newlines come from preformatted text
  bool space_ = false;               // owed before the next word
  bool line_end_ = false;  // the space was a line end in the page's source
  bool at_line_start_ = true;
  int indent_ = 0;
};

bool IsSpace(char c);

// Returns `text` on one line: white space is collapsed, and removed at the
// ends.
std::string OneLine(std::string_view text);

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_TEXT_WRITER_H_
