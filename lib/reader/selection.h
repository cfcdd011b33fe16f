#ifndef TIERCEL_LIB_READER_SELECTION_H_
#define TIERCEL_LIB_READER_SELECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/reader/outline.h"

namespace tiercel::reader {

// The choice of --chapters: numbers as ChaptersOf has them, both ends included,
// or a title.
struct ChapterChoice {
  struct Range {
    int64_t first;
    int64_t last;
  };
  std::vector<Range> ranges;
  std::string title;  // used without ranges
};
// Parses "3,5-7". Any text that is not made of digits, commas and '-' is a
// title. Absent if a range lacks an end or goes down.
std::optional<ChapterChoice> ParseChapters(std::string_view text);

// The choice of --pages: items, each the number of a page as it is printed, or
// two with a dash between: "10-40", "xii", "3,vii-9". An item that is a page's
// number is that page ("A-3", "3-4" in a book with such numbers). Any other is
// cut at the first dash that has a page's number before it and, behind it, one
// of the same page or a later one ("A-3-A-7"). If several pages share a number
// the first counts; for the last end, the first at or after the first end.
struct PageChoice {
  std::vector<std::string> items;
};
// Absent if an item, or an end of one, is empty.
std::optional<PageChoice> ParsePages(std::string_view text);

// Returns the book reduced to those chapters or pages, in the order of the
// book. It keeps the sections and pages within them, and the chapter and the
// page in which they begin, so that places stay those of the book. A title
// matches a section of any level by its whole title or a part of it, ignoring
// case; several may match. Errors: "chapter_not_found" and "page_not_found",
// whose messages list what there is; "no_chapters" and "no_pages" if the book
// has none.
document::Result SelectChapters(const Document& book,
                                const ChapterChoice& choice);
document::Result SelectPages(const Document& book, const PageChoice& choice);

// Returns the book reduced to one of its chapters (ChaptersOf).
Document SelectChapter(const Document& book, const Chapter& chapter);

// Returns "3 Loomings, 4 ...": the chapters to choose from, as --chapters takes
// them; at most `most` of them, and the number of the others.
std::string ChapterList(const Document& book, size_t most);

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_SELECTION_H_
