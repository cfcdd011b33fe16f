#include "lib/reader/places.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "lib/reader/text.h"

namespace tiercel::reader {
namespace {

// Returns "12 to 31", or the number itself if both are the same.
std::string FromTo(const std::string& first, const std::string& last) {
  return first == last ? first : first + " to " + last;
}

// Returns the sections down to `level` that the run touches, the innermost at
// each place.
std::vector<size_t> SectionsIn(const Document& book, int level, size_t begin,
                               size_t end) {
  std::vector<size_t> found;
  for (size_t i = 0; i < book.sections.size(); ++i) {
    const Section& section = book.sections[i];
    if (section.begin >= end) break;
    if (section.level > level) continue;
    // A section's own text ends where the next section down to `level` begins.
    size_t own_end = book.text.size();
    for (size_t j = i + 1; j < book.sections.size(); ++j) {
      if (book.sections[j].level > level) continue;
      own_end = book.sections[j].begin;
      break;
    }
    if (own_end > begin && own_end > section.begin) found.push_back(i);
  }
  return found;
}

std::vector<std::string> PagesIn(const Document& book, size_t begin,
                                 size_t end) {
  std::vector<std::string> pages;
  const std::string first = PageAt(book, begin);
  if (!first.empty()) pages.push_back(first);
  const auto after = std::upper_bound(
      book.pages.begin(), book.pages.end(), begin,
      [](size_t at, const Page& page) { return at < page.begin; });
  for (auto page = after; page != book.pages.end() && page->begin < end;
       ++page) {
    pages.push_back(page->number);
  }
  return pages;
}

// Removes blanks at the ends of the run; false if nothing remains.
bool Trim(const Document& book, size_t* begin, size_t* end) {
  const std::string_view run =
      std::string_view(book.text).substr(*begin, *end - *begin);
  const size_t first = run.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return false;
  *end = *begin + run.find_last_not_of(kBlanks) + 1;
  *begin += first;
  return true;
}

std::string Name(const Document& book, const std::vector<size_t>& sections,
                 const std::vector<std::string>& pages) {
  std::string name;
  if (!sections.empty()) {
    name = FromTo(NameOf(book.sections[sections.front()]),
                  NameOf(book.sections[sections.back()]));
  }
  if (pages.empty()) return name;
  const bool one = pages.front() == pages.back();
  return name + (name.empty() ? "" : ", ") + (one ? "page " : "pages ") +
         FromTo(pages.front(), pages.back());
}

}  // namespace

Places PlacesOf(const Document& book, size_t begin, size_t end) {
  Places places;
  if (!Trim(book, &begin, &end)) return places;
  const std::vector<size_t> chapters =
      SectionsIn(book, ChapterLevel(book), begin, end);
  for (const size_t i : chapters) {
    places.chapters.push_back(TitleOf(book.sections[i]));
  }
  places.pages = PagesIn(book, begin, end);
  places.text = Name(book, chapters, places.pages);
  return places;
}

std::string NarrowPlace(const Document& book, size_t begin, size_t end) {
  if (!Trim(book, &begin, &end)) return "";
  int deepest = 0;
  for (const Section& section : book.sections) {
    deepest = std::max(deepest, section.level);
  }
  int level = ChapterLevel(book);
  std::vector<size_t> sections = SectionsIn(book, level, begin, end);
  while (sections.size() == 1 && level < deepest) {
    sections = SectionsIn(book, ++level, begin, end);
  }
  return Name(book, sections, PagesIn(book, begin, end));
}

}  // namespace tiercel::reader
