#ifndef TIERCEL_APPS_READER_PLACES_H_
#define TIERCEL_APPS_READER_PLACES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "apps/reader/outline.h"

namespace tiercel::reader {

// Where in a book a run of its text stands. It follows from the run alone.
struct Places {
  std::vector<std::string> chapters;  // titles, in order
  std::vector<std::string> pages;     // as they are numbered
  // "Chapter 3 Loomings to Chapter 5 Breakfast, pages 12 to 31"; of a book
  // without chapters or pages empty.
  std::string text;
};

// The places of the run from `begin` to `end`, in bytes; blanks at its ends
// stand nowhere.
Places PlacesOf(const Document& book, size_t begin, size_t end);

// The `text` of PlacesOf, but of a run within one chapter by the chapter's
// sections, as far down as they tell more: "2.1 The DFSG to 2.2 Areas, page 3".
std::string NarrowPlace(const Document& book, size_t begin, size_t end);

}  // namespace tiercel::reader

#endif  // TIERCEL_APPS_READER_PLACES_H_
