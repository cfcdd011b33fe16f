#ifndef TIERCEL_LIB_READER_QUOTATIONS_H_
#define TIERCEL_LIB_READER_QUOTATIONS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/reader/plain_form.h"

namespace tiercel::reader {

// Words between quotation marks, and their place in a book, if it has them.
struct Quotation {
  std::string text;  // without its marks
  bool found = false;
  size_t begin = 0;  // place in the book, in bytes; 0: not found
  size_t end = 0;
};

// Looks up quotations in a book.
class QuotationFinder {
 public:
  // A run of the book's text, in bytes.
  struct Run {
    size_t begin;
    size_t end;
  };

  // The book must outlive the finder.
  explicit QuotationFinder(std::string_view book) : book_(book) {}

  // Returns the quotations of four words or more in `answer`. They stand
  // between the marks of any of several languages ("", “”, „“, «», ‘’, 「」 and
  // their like); a letter of a script without spaces counts as a word. A
  // quotation does not span paragraphs of the answer. Its place is the first in
  // the first of the runs that has its words, or else the first in the book.
  //
  // Words are the same if their plain forms are. They are whole: "he can" is
  // not in "she can", nor in "he can't". What stands before the first word and
  // behind the last, such as a full stop, may be the answer's own, and so may
  // the case of the first word.
  std::vector<Quotation> Find(std::string_view answer,
                              const std::vector<Run>& first = {});

 private:
  const std::string_view book_;
  std::optional<PlainForm> plain_;  // absent: nothing was looked up yet
};

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_QUOTATIONS_H_
