#ifndef TIERCEL_LIB_READER_CHAPTER_PATTERN_H_
#define TIERCEL_LIB_READER_CHAPTER_PATTERN_H_

#include <memory>
#include <string>

#include "lib/documents/document.h"

namespace re2 {
class RE2;
}

namespace tiercel::reader {

// A reader's own rule for the headings of a book in which nothing finds them: a
// regular expression in RE2's syntax, of which a part of a line must be an
// instance. "^" and "$" are the ends of the line.
class ChapterPattern {
 public:
  // error() says why if `pattern` is no regular expression.
  explicit ChapterPattern(const std::string& pattern);
  ~ChapterPattern();
  ChapterPattern(ChapterPattern&&) noexcept;
  ChapterPattern& operator=(ChapterPattern&&) noexcept;

  // Empty if the pattern can be used.
  std::string error() const;
  // Makes the lines of a book that match its sections, all of one level, in
  // place of those that it has. Returns their number.
  size_t Apply(document::Document* book) const;

 private:
  std::unique_ptr<re2::RE2> pattern_;
};

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_CHAPTER_PATTERN_H_
