#ifndef TIERCEL_LIB_DOCUMENTS_PDF_NOTES_H_
#define TIERCEL_LIB_DOCUMENTS_PDF_NOTES_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/documents/pdf_layout.h"

namespace tiercel::document {

// The height of the letters of notes is less than this share of the body's.
inline constexpr float kSmallPrint = 0.93F;
// The signs of notes that have no numbers.
inline constexpr std::string_view kNoteSigns[] = {"**", "*", "††",
                                                  "†",  "‡", "§"};

// A note at the foot of a page, and on the pages behind it.
struct PdfNote {
  struct Line {
    const PdfBlock* block;
    size_t index;       // in the block
    size_t first_word;  // behind the number

    const PdfLine& line() const { return block->lines[index]; }
  };
  std::string number;  // or its sign; empty: it has none
  std::vector<Line> lines;
};

// Finds the notes of a PDF, page by page. The pages outlive it.
class PdfNotes {
 public:
  // `body`: the height of the body's letters.
  explicit PdfNotes(float body) : body_(body) {}

  // Finds the notes at the foot of the next page: small print, with no text of
  // the body's size below it in its column. A note begins with a number that is
  // raised, or to which a raised one on the page refers, or with a sign that
  // ends a word of the text there; the foot of a column
  // may first continue the note before. A list below a heading of its own is
  // none, nor is a column of small print alone whose numbers do not follow
  // those before.
  void AddPage(const PdfPage& page);
  // Returns true for a block of notes on that page.
  bool Has(const PdfBlock& block) const { return blocks_.count(&block) > 0; }
  // Returns true for a word on that page that refers to a note there.
  bool IsReference(const PdfLine& line, size_t word) const;
  // Takes the notes of all pages since the last call.
  std::vector<PdfNote> Take();

 private:
  using Column = std::vector<const PdfBlock*>;  // from top to bottom

  bool IsSmall(const PdfBlock& block) const;
  bool IsAtFoot(const PdfBlock& block, const PdfPage& page) const;
  // The last block of the body's size above a block in its column; null: none.
  const PdfBlock* TextAbove(const PdfBlock& block, const PdfPage& page) const;
  // The small print at the foot of each column, from left to right.
  std::vector<Column> FeetOf(const PdfPage& page) const;
  bool BeginsNote(const PdfLine& line) const;
  // The first line of a block that begins a note; null: none.
  const PdfLine* FirstNote(const PdfBlock& block) const;
  // Returns true for the number of a note to which the text of this page or of
  // the one before refers, or that follows the last note's.
  bool IsInOrder(const std::string& number) const;
  // Returns true if the last block of the text above small print is a heading
  // of the list that begins with this number.
  bool IsHeadingOf(const PdfBlock& above, const std::string& number) const;
  // Returns true if a block goes on with the last note, which broke off at the
  // end of its column.
  bool GoesOn(const PdfBlock& block, bool is_above_note) const;
  // Adds the notes of the small print at the foot of one column.
  void AddColumn(const Column& column, const PdfPage& page);
  // Adds a block; its first lines go on with the last note, or begin one.
  void Add(const PdfBlock* block, bool goes_on);

  const float body_;
  std::vector<PdfNote> notes_;
  // The last page's blocks of notes, the numbers of its notes, the numbers that
  // are raised in its lines, with the signs in its text, and the numbers in its
  // text alone.
  std::set<const PdfBlock*> blocks_;
  std::set<std::string> numbers_;
  std::set<std::string> raised_;
  std::set<std::string> references_;
  // The references in the text of the page before, which no note there had.
  std::set<std::string> pending_;
  // True if the page or the column before had notes.
  bool went_on_ = false;
  float right_ = 0;  // right edge of the last notes' column
};

}  // namespace tiercel::document

#endif  // TIERCEL_LIB_DOCUMENTS_PDF_NOTES_H_
