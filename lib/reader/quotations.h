#ifndef TIERCEL_LIB_READER_QUOTATIONS_H_
#define TIERCEL_LIB_READER_QUOTATIONS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tiercel::reader {

// Words between quotation marks, and their place in a book, if it has them.
struct Quotation {
  std::string text;  // without its marks
  bool found = false;
  size_t begin = 0;  // first place in the book, in bytes; 0: not found
  size_t end = 0;
};

// Returns the quotations of four words or more in `answer`, looked up in
// `book`. They stand between the marks of any of several languages ("", “”, „“,
// «», ‘’, 「」 and their like); a letter of a script without spaces counts as a
// word. Runs of blanks are one space on both sides, and all quotation marks of
// a kind are one. A comma or full stop at the end of a quotation may be the
// answer's own, and so may a capital letter at its beginning. Words are whole:
// "he can" is not in "she can". A quotation does not span paragraphs.
std::vector<Quotation> FindQuotations(std::string_view answer,
                                      std::string_view book);

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_QUOTATIONS_H_
