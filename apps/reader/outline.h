#ifndef TIERCEL_APPS_READER_OUTLINE_H_
#define TIERCEL_APPS_READER_OUTLINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/document/document.h"

// What the sections and pages of a document mean to who reads it. Offsets are
// bytes of the document's text.
namespace tiercel::reader {

using document::Document;
using document::Page;
using document::Section;

// Where the section at `index` ends: where the next of its level or of one
// above it begins.
size_t SectionEnd(const Document& book, size_t index);

// A number of decimal digits alone, at most nine.
std::optional<int64_t> DecimalNumber(std::string_view text);

// 3 of "Chapter 3", "3." and "III"; absent for "2.1" and "Preface".
std::optional<int64_t> NumberOf(const Section& section);

// "Chapter 3 Loomings": what a person calls it. Never empty.
std::string NameOf(const Section& section);
// "Loomings"; where there is no title, the label.
std::string TitleOf(const Section& section);

// The level whose sections are the chapters: the one that has most numbers; of
// a book without, the first that divides it. 0: there are no sections.
int ChapterLevel(const Document& book);

// A chapter, or what stands beside chapters without being divided into any: a
// preface, a part of one piece.
struct Chapter {
  size_t section;  // its index
  size_t begin;
  size_t end;
  // What --chapters calls it: its own number, where those of all chapters go
  // up, or else its place, from 1. Absent: its title alone names it.
  std::optional<int64_t> number;
};
// They are in the order of the book. What was chosen of a book has the book's
// chapters, by their numbers there.
std::vector<Chapter> ChaptersOf(const Document& book);

// The number of the page that `offset` is on; empty before the first.
std::string PageAt(const Document& book, size_t offset);

}  // namespace tiercel::reader

#endif  // TIERCEL_APPS_READER_OUTLINE_H_
