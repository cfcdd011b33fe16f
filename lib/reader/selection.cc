#include "lib/reader/selection.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/documents/encoding.h"
#include "lib/reader/text.h"

namespace tiercel::reader {
namespace {

constexpr size_t kMostListed = 40;

struct Run {
  size_t begin;
  size_t end;
};

std::vector<std::string_view> Split(std::string_view text, char by) {
  std::vector<std::string_view> items;
  for (;;) {
    const size_t at = text.find(by);
    items.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return items;
    text.remove_prefix(at + 1);
  }
}

document::Error NotFound(std::string code, std::string message) {
  return {document::Error::Kind::kInput, std::move(code), std::move(message)};
}

// Returns the runs in order; runs that touch become one.
std::vector<Run> Joined(std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const Run& a, const Run& b) { return a.begin < b.begin; });
  std::vector<Run> joined;
  for (const Run& run : runs) {
    if (!joined.empty() && run.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, run.end);
    } else {
      joined.push_back(run);
    }
  }
  return joined;
}

// Copies runs of a book into another, with the sections and pages around them.
class Excerpt {
 public:
  explicit Excerpt(const Document& book)
      : book_(book), level_(ChapterLevel(book)) {
    for (const Chapter& chapter : ChaptersOf(book)) {
      chapters_[chapter.section] = chapter.number;
    }
    excerpt_.chapters.emplace();
    excerpt_.title = book.title;
    excerpt_.author = book.author;
    excerpt_.language = book.language;
    excerpt_.warnings = book.warnings;
  }

  void Add(const Run& run) {
    std::string& text = excerpt_.text;
    if (!text.empty()) text += "\n\n";  // no sentence spans two runs
    const size_t at = text.size();
    text.append(book_.text, run.begin, run.end - run.begin);
    for (size_t i = 0; i < book_.sections.size(); ++i) {
      const Section& section = book_.sections[i];
      if (section.begin >= run.end) break;
      // Sections above the chapters are left out: their names say nothing of
      // these.
      const bool around = section.begin < run.begin &&
                          (section.level >= level_ || chapters_.contains(i)) &&
                          SectionEnd(book_, i) > run.begin;
      if (section.begin >= run.begin) {
        AddSection(i, at + section.begin - run.begin);
      } else if (around &&
                 std::find(open_.begin(), open_.end(), i) == open_.end()) {
        AddSection(i, at);
      }
    }
    const std::string first = PageAt(book_, run.begin);
    if (!first.empty() &&
        (excerpt_.pages.empty() || excerpt_.pages.back().number != first)) {
      excerpt_.pages.push_back({at, first});
    }
    for (const Page& page : book_.pages) {
      if (page.begin > run.begin && page.begin < run.end) {
        excerpt_.pages.push_back({at + page.begin - run.begin, page.number});
      }
    }
  }

  Document Take() && { return std::move(excerpt_); }

 private:
  void AddSection(size_t index, size_t begin) {
    while (!open_.empty() &&
           book_.sections[open_.back()].level >= book_.sections[index].level) {
      open_.pop_back();
    }
    open_.push_back(index);
    if (const auto chapter = chapters_.find(index);
        chapter != chapters_.end()) {
      excerpt_.chapters->push_back({excerpt_.sections.size(), chapter->second});
    }
    excerpt_.sections.push_back(book_.sections[index]);
    excerpt_.sections.back().begin = begin;
  }

  const Document& book_;
  const int level_;  // level of chapters
  // The numbers of chapters, by the indices of their sections.
  std::map<size_t, std::optional<int64_t>> chapters_;
  Document excerpt_;
  std::vector<size_t> open_;  // sections of the book around the excerpt's end
};

Document ExcerptOf(const Document& book, std::vector<Run> runs) {
  Excerpt excerpt(book);
  for (const Run& run : Joined(std::move(runs))) excerpt.Add(run);
  return std::move(excerpt).Take();
}

std::vector<Run> Titled(const Document& book, const std::string& title) {
  const std::string wanted = document::Lowercase(OneLine(title));
  std::vector<Run> whole;
  std::vector<Run> in_part;
  for (size_t i = 0; i < book.sections.size(); ++i) {
    const Section& section = book.sections[i];
    const Run run = {section.begin, SectionEnd(book, i)};
    const std::string name = document::Lowercase(NameOf(section));
    if (wanted == name ||
        wanted == document::Lowercase(OneLine(section.title)) ||
        wanted == document::Lowercase(OneLine(section.label))) {
      whole.push_back(run);
    } else if (name.find(wanted) != std::string::npos) {
      in_part.push_back(run);
    }
  }
  return whole.empty() ? in_part : whole;
}

// Indices of pages, both ends included.
struct PageRange {
  size_t first;
  size_t last;
};

// Returns the pages for an item of --pages. Absent if the book lacks them; then
// `missing` receives the number that it lacks.
std::optional<PageRange> PagesOf(const Document& book, const std::string& item,
                                 std::string* missing) {
  const auto numbered = [&](size_t from,
                            std::string_view number) -> std::optional<size_t> {
    for (size_t i = from; i < book.pages.size(); ++i) {
      if (book.pages[i].number == number) return i;
    }
    return std::nullopt;
  };
  if (const auto page = numbered(0, item)) return PageRange{*page, *page};
  *missing = item;
  const bool dashes =
      std::any_of(book.pages.begin(), book.pages.end(), [](const Page& page) {
        return page.number.find('-') != std::string::npos;
      });
  for (size_t dash = item.find('-'); dash != std::string::npos;
       dash = item.find('-', dash + 1)) {
    const std::string first(Trimmed(item.substr(0, dash)));
    const std::string last(Trimmed(item.substr(dash + 1)));
    const auto from = numbered(0, first);
    const auto to = numbered(from.value_or(book.pages.size()), last);
    if (to.has_value()) return PageRange{*from, *to};
    // The message names the end that is missing. If the first number exists it
    // is the last; else the first, unless other pages' numbers have dashes.
    if (from.has_value()) {
      *missing = last;
      *missing += " at or after ";
      *missing += first;
    } else if (!dashes && item.find('-') == item.rfind('-')) {
      *missing = first;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<ChapterChoice> ParseChapters(std::string_view text) {
  ChapterChoice choice;
  if (text.find_first_not_of("0123456789,- ") != std::string_view::npos) {
    choice.title = text;
    if (OneLine(text).empty()) return std::nullopt;
    return choice;
  }
  for (const std::string_view item : Split(text, ',')) {
    const size_t dash = item.find('-');
    const auto first = DecimalNumber(Trimmed(item.substr(0, dash)));
    const auto last = dash == std::string_view::npos
                          ? first
                          : DecimalNumber(Trimmed(item.substr(dash + 1)));
    if (!first.has_value() || !last.has_value() || *first > *last) {
      return std::nullopt;
    }
    choice.ranges.push_back({*first, *last});
  }
  return choice;
}

std::optional<PageChoice> ParsePages(std::string_view text) {
  PageChoice choice;
  for (const std::string_view item : Split(text, ',')) {
    const std::string_view words = Trimmed(item);
    if (words.empty() || words.front() == '-' || words.back() == '-') {
      return std::nullopt;
    }
    choice.items.emplace_back(words);
  }
  return choice;
}

std::string ChapterList(const Document& book, size_t most) {
  const std::vector<Chapter> chapters = ChaptersOf(book);
  std::string list;
  for (size_t i = 0; i < std::min(most, chapters.size()); ++i) {
    const Section& section = book.sections[chapters[i].section];
    if (i > 0) list += ", ";
    if (chapters[i].number.has_value()) {
      list += std::to_string(*chapters[i].number) + " ";
    }
    list += TitleOf(section);
  }
  if (chapters.size() > most) {
    list += " and " + std::to_string(chapters.size() - most) +
            " more, which --toc lists";
  }
  return list;
}

document::Result SelectChapters(const Document& book,
                                const ChapterChoice& choice) {
  const std::vector<Chapter> chapters = ChaptersOf(book);
  if (chapters.empty()) {
    return NotFound("no_chapters", "chapters: the document has none");
  }
  const std::string there_are = "; there are " + ChapterList(book, kMostListed);
  if (!choice.title.empty()) {
    const std::vector<Run> runs = Titled(book, choice.title);
    if (runs.empty()) {
      return NotFound("chapter_not_found", "chapters: no title has '" +
                                               choice.title + "'" + there_are);
    }
    return ExcerptOf(book, runs);
  }
  std::vector<Run> runs;
  for (const ChapterChoice::Range& range : choice.ranges) {
    const size_t before = runs.size();
    for (const Chapter& chapter : chapters) {
      if (chapter.number.has_value() && *chapter.number >= range.first &&
          *chapter.number <= range.last) {
        runs.push_back({chapter.begin, chapter.end});
      }
    }
    // Both ends must exist, or less would be read than was requested.
    const int64_t found = static_cast<int64_t>(runs.size() - before);
    if (found == 0 || found < range.last - range.first + 1) {
      std::string message = "chapters: not all of ";
      message += std::to_string(range.first);
      if (range.first < range.last) message += "-" + std::to_string(range.last);
      message += " are there";
      return NotFound("chapter_not_found", message + there_are);
    }
  }
  return ExcerptOf(book, std::move(runs));
}

Document SelectChapter(const Document& book, const Chapter& chapter) {
  return ExcerptOf(book, {{chapter.begin, chapter.end}});
}

document::Result SelectPages(const Document& book, const PageChoice& choice) {
  if (book.pages.empty()) {
    return NotFound("no_pages", "pages: the document has no page numbers");
  }
  std::vector<Run> runs;
  for (const std::string& item : choice.items) {
    std::string missing;
    const std::optional<PageRange> range = PagesOf(book, item, &missing);
    if (!range.has_value()) {
      std::string message = "pages: no page ";
      message += missing + "; they go from ";
      message += book.pages.front().number + " to ";
      return NotFound("page_not_found", message + book.pages.back().number);
    }
    const size_t next = range->last + 1;
    runs.push_back({book.pages[range->first].begin,
                    next == book.pages.size() ? book.text.size()
                                              : book.pages[next].begin});
  }
  return ExcerptOf(book, std::move(runs));
}

}  // namespace tiercel::reader
