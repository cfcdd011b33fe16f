#include "lib/documents/pdf_sections.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/documents/labels.h"
#include "lib/documents/outline.h"
#include "lib/documents/text_lines.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// A title takes at most this many lines.
constexpr size_t kMaxTitleLines = 4;
// Real outlines and pages have fewer; more would take long.
constexpr size_t kMaxItems = 10'000;
constexpr size_t kMaxSearched = 5'000;
constexpr size_t kMaxPageLines = 1'000;

// The lines of one page, and its position in the text.
struct PageLines {
  size_t index = std::string::npos;
  size_t begin = 0;
  std::vector<TextLine> lines;
};

class Locator {
 public:
  explicit Locator(const Document& document) : document_(document) {}

  // Returns the section of an item that begins at or behind `after`, on its
  // page or, where its title stands, on one of those up to `last`; nothing if
  // the item leads nowhere and its title stands on none.
  std::optional<Section> Locate(const PdfOutlineItem& item, size_t after,
                                size_t first, size_t last) {
    if (item.page.has_value())
      return LocateOn(*item.page, item, after, nullptr);
    for (size_t page = first; page <= last && left_ > 0; ++page, --left_) {
      bool is_found = false;
      Section section = LocateOn(page, item, after, &is_found);
      if (is_found) return section;
    }
    return std::nullopt;
  }

 private:
  Section LocateOn(size_t page, const PdfOutlineItem& item, size_t after,
                   bool* is_found) {
    ReadPage(page);
    Label label = SplitLabel(item.text);
    Section section = {item.level, std::move(label.label),
                       std::move(label.title), std::max(page_.begin, after),
                       ""};
    const std::string key = HeadingKey(section.title);
    // "Chapter 2" alone is a title, too.
    const std::string title_key = key.empty() ? HeadingKey(item.text) : key;
    for (size_t i = 0; i < page_.lines.size(); ++i) {
      if (page_.begin + page_.lines[i].begin < after) continue;
      std::string found;
      if (!IsTitle(i, title_key, &found)) continue;
      section.begin = page_.begin + page_.lines[i].begin;
      if (section.label.empty()) section.label = std::move(found);
      if (section.label.empty()) TakeLabelAbove(i, after, &section);
      if (is_found != nullptr) *is_found = true;
      break;
    }
    return section;
  }

  void ReadPage(size_t page) {
    const std::vector<Page>& pages = document_.pages;
    if (page >= pages.size()) page = pages.size() - 1;
    if (page == page_.index) return;
    page_.index = page;
    const size_t end =
        page + 1 < pages.size() ? pages[page + 1].begin : document_.text.size();
    page_.begin = pages[page].begin;
    page_.lines = LinesOf(std::string_view(document_.text)
                              .substr(page_.begin, end - page_.begin));
    page_.lines.resize(std::min(page_.lines.size(), kMaxPageLines));
  }

  // Returns true if a title begins at line `first` and ends at the end of that
  // line or of a later one. `label` receives the label before it.
  bool IsTitle(size_t first, const std::string& key, std::string* label) const {
    std::string lines;
    const size_t end = std::min(first + kMaxTitleLines, page_.lines.size());
    for (size_t i = first; i < end; ++i) {
      if (i > first) lines += " ";
      lines += page_.lines[i].text;
      const std::string lines_key = HeadingKey(lines);
      if (lines_key == key) return true;
      if (lines_key.size() < key.size()) continue;
      Label split = SplitLabel(lines);
      if (split.label.empty()) split = SplitBare(lines);
      // "Chapter 1": its title is on the next line.
      if (!split.label.empty() && split.title.empty()) continue;
      if (HeadingKey(split.title) != key) return false;
      *label = std::move(split.label);
      return true;
    }
    return false;
  }

  // For "1 Scope" the outline shows that the number is no part of the title.
  static Label SplitBare(const std::string& line) {
    const size_t end = line.find(' ');
    if (end == std::string::npos) return {};
    return SplitLabel(line.substr(0, end) + "." + line.substr(end));
  }

  // Takes a label that stands alone on the one or two lines above a title.
  void TakeLabelAbove(size_t title, size_t after, Section* section) const {
    std::string above;
    for (size_t i = title; i-- > 0 && i + 2 >= title;) {
      const size_t begin = page_.begin + page_.lines[i].begin;
      if (begin < after) return;
      std::string line(page_.lines[i].text);
      if (!above.empty()) line.append(" ").append(above);
      above = std::move(line);
      Label label = SplitLabel(above);
      if (label.rank != Rank::kNone && label.title.empty()) {
        section->label = std::move(label.label);
        section->begin = begin;
        if (label.rank != Rank::kNumber) return;
      }
    }
  }

  const Document& document_;
  PageLines page_;
  size_t left_ = kMaxSearched;  // pages that may yet be searched
};

}  // namespace

std::vector<Section> LocateOutline(const std::vector<PdfOutlineItem>& outline,
                                   Document* document) {
  std::vector<Section> sections;
  if (document->pages.empty()) return sections;
  Locator locator(*document);
  size_t after = 0;
  size_t page = 0;  // the last section's
  size_t num_lost = 0;
  std::string first_lost;
  std::vector<int> open;  // levels of the items that a new one may lie in
  const size_t count = std::min(outline.size(), kMaxItems);
  for (size_t i = 0; i < count; ++i) {
    const PdfOutlineItem& item = outline[i];
    if (HeadingKey(item.text).empty()) continue;
    const auto next = std::find_if(
        outline.begin() + static_cast<std::ptrdiff_t>(i),
        outline.begin() + static_cast<std::ptrdiff_t>(count),
        [](const PdfOutlineItem& other) { return other.page.has_value(); });
    const size_t last_page = document->pages.size() - 1;
    const size_t last =
        next == outline.begin() + static_cast<std::ptrdiff_t>(count)
            ? last_page
            : std::min(*next->page, last_page);
    std::optional<Section> section = locator.Locate(item, after, page, last);
    if (!section.has_value()) {
      if (num_lost++ == 0) first_lost = item.text;
      continue;
    }
    while (!open.empty() && open.back() >= item.level) open.pop_back();
    open.push_back(item.level);
    section->level = static_cast<int>(open.size());
    after = section->begin;
    if (item.page.has_value()) page = *item.page;
    sections.push_back(*std::move(section));
  }
  if (num_lost > 0) {
    document->warnings.push_back(std::to_string(num_lost) +
                                 " entries of the outline lead nowhere: " +
                                 first_lost + (num_lost > 1 ? ", ..." : ""));
  }
  return sections;
}

}  // namespace tiercel::document
