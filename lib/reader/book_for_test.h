#ifndef TIERCEL_LIB_READER_BOOK_FOR_TEST_H_
#define TIERCEL_LIB_READER_BOOK_FOR_TEST_H_

#include <string>
#include <string_view>

#include "lib/reader/outline.h"

namespace tiercel::reader {

// Makes a book from a few lines: "# Label|Title" begins a section ("##" one
// within it), "@12" page 12, and all other lines are text.
inline Document BookOf(std::string_view lines) {
  Document book;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string line(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.substr(0, 1) == "@") {
      book.pages.push_back({book.text.size(), line.substr(1)});
    } else if (line.substr(0, 1) == "#") {
      const size_t level = line.find_first_not_of('#');
      const size_t bar = line.find('|');
      book.sections.push_back({.level = static_cast<int>(level),
                               .label = line.substr(level + 1, bar - level - 1),
                               .title = line.substr(bar + 1),
                               .begin = book.text.size(),
                               .anchor = ""});
      book.text += book.sections.back().title + "\n\n";
    } else {
      book.text += line + "\n";
    }
  }
  return book;
}

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_BOOK_FOR_TEST_H_
