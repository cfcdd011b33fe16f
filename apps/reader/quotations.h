#ifndef TIERCEL_APPS_READER_QUOTATIONS_H_
#define TIERCEL_APPS_READER_QUOTATIONS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::reader {

// Words between quotation marks, and whether a book has them.
struct Quotation {
  std::string text;  // without its marks
  bool found = false;
  size_t begin = 0;  // where the book has it first, in bytes; 0: not found
  size_t end = 0;
};

// The quotations of four words or more in `answer`, between the marks of any of
// several languages ("", “”, „“, «», ‘’, 「」 and their like; a letter of a
// script without spaces counts as a word), looked up in `book`. Runs of blanks
// are one space there and here, and all quotation marks of a kind are one; a
// comma or full stop at the end of a quotation may be the answer's own, and so
// may a capital letter at its beginning. Words are whole: "he can" is not in
// "she can". What spans paragraphs is none.
std::vector<Quotation> FindQuotations(std::string_view answer,
                                      std::string_view book);

}  // namespace tiercel::reader

#endif  // TIERCEL_APPS_READER_QUOTATIONS_H_
