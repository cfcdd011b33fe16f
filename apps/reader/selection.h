#ifndef TIERCEL_APPS_READER_SELECTION_H_
#define TIERCEL_APPS_READER_SELECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/reader/outline.h"

namespace tiercel::reader {

// What --chapters asks for: numbers as ChaptersOf has them, both ends included,
// or a title.
struct ChapterChoice {
  struct Range {
    int64_t first;
    int64_t last;
  };
  std::vector<Range> ranges;
  std::string title;  // where there are no ranges
};
// "3,5-7"; all that is not made of digits, commas and '-' is a title. Absent
// where a range is not whole or goes down.
std::optional<ChapterChoice> ParseChapters(std::string_view text);

// What --pages asks for: items, each a page's number as it is printed, or two
// with a dash between: "10-40", "xii", "3,vii-9". An item that is a number of
// the book is that page ("A-3", "3-4" where pages are numbered so); any other
// is cut at its first dash that has a number before it, and behind it one of
// the same page or a later ("A-3-A-7"). Of pages of one number it is the first,
// from the first end on.
struct PageChoice {
  std::vector<std::string> items;
};
// Absent where an item or an end of one is empty.
std::optional<PageChoice> ParsePages(std::string_view text);

// The book without all but those chapters or pages, in the order of the book.
// It keeps the sections and pages it is made of, with the chapter and the page
// that it begins in, so that its places are the book's. A title is that of a
// section of any level, whole or in part, whatever its letters' case; several
// may have it. Errors: "chapter_not_found", "page_not_found", which say what
// there is; "no_chapters" and "no_pages", where the book has none.
document::Result SelectChapters(const Document& book,
                                const ChapterChoice& choice);
document::Result SelectPages(const Document& book, const PageChoice& choice);

// "3 Loomings, 4 ...": the chapters to choose from, as --chapters takes them;
// the first `most`, and how many more.
std::string ChapterList(const Document& book, size_t most);

}  // namespace tiercel::reader

#endif  // TIERCEL_APPS_READER_SELECTION_H_
