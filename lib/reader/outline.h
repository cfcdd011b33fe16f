#ifndef TIERCEL_LIB_READER_OUTLINE_H_
#define TIERCEL_LIB_READER_OUTLINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/documents/document.h"

// A reader's view of a document's sections and pages: chapters, names, page
// numbers. Offsets are bytes of the document's text.
namespace tiercel::reader {

using document::Document;
using document::Page;
using document::Section;

// The end of the section at `index`: the start of the next section of its level
// or of one above it.
size_t SectionEnd(const Document& book, size_t index);

// Parses a number of decimal digits alone, at most nine.
std::optional<int64_t> DecimalNumber(std::string_view text);

// Returns 3 for "Chapter 3", "3." and "III"; nothing for "2.1" and "Preface".
std::optional<int64_t> NumberOf(const Section& section);

// Returns the name that a person calls it by: "Chapter 3 Loomings". Never
// empty.
std::string NameOf(const Section& section);
// Returns "Loomings", or the label if there is no title.
std::string TitleOf(const Section& section);

// The level whose sections are the chapters: the one with the most numbers; in
// a book without numbers, the first that divides it. 0 if there are no
// sections.
int ChapterLevel(const Document& book);

// A chapter, or a section beside chapters that is not divided into any: a
// preface, or a part in one piece.
struct Chapter {
  size_t section;  // its index
  size_t begin;
  size_t end;
  // The number by which --chapters names it: its own number if those of all
  // chapters go up, else its place, from 1. Absent: only its title names it.
  std::optional<int64_t> number;
};
// Returns the chapters in the order of the book. An excerpt of a book has the
// book's chapters, by their numbers there.
std::vector<Chapter> ChaptersOf(const Document& book);

// The number of the page at `offset`; empty before the first page.
std::string PageAt(const Document& book, size_t offset);

}  // namespace tiercel::reader

#endif  // TIERCEL_LIB_READER_OUTLINE_H_
