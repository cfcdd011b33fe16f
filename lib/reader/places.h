#ifndef TIERCEL_LIB_READER_PLACES_H_
#define TIERCEL_LIB_READER_PLACES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "lib/reader/outline.h"

namespace tiercel::reader {

// The position in a book of a run of its text. It follows from the run alone.
struct Places {
  std::vector<std::string> chapters;  // titles, in order
  std::vector<std::string> pages;     // as they are numbered
  // "Chapter 3 Loomings to Chapter 5 Breakfast, pages 12 to 31"; empty for a
  // book without chapters or pages.
  std::string text;
};

// Returns the places of the run from `begin` to `end`, in bytes. Blanks at its
// ends do not count.
Places PlacesOf(const Document& book, size_t begin, size_t end);

// Returns the `text` of PlacesOf; for a run within one chapter, by the
// chapter's sections, as far down as they tell more: "2.1 The DFSG to 2.2
// Areas, page 3".
std::string NarrowPlace(const Document& book, size_t begin, size_t end);

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_PLACES_H_
