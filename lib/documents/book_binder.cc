#include "lib/documents/book_binder.h"

#include <algorithm>
#include <unordered_set>

#include "lib/documents/labels.h"
#include "lib/documents/text_lines.h"
#include "lib/documents/unicode.h"

namespace tiercel::document {
namespace {

// Returns the first line of a page, if the page has no heading and the line is
// one in all but name: it repeats the page's title, or it is a chapter's label.
std::string TitleLine(const HtmlPage& page) {
  if (!page.headings.empty()) return {};
  const size_t begin = page.text.find_first_not_of('\n');
  if (begin == std::string::npos) return {};
  const size_t end = page.text.find('\n', begin);
  if (page.text.find_first_not_of('\n', end) == std::string::npos) return {};
  const std::string line = page.text.substr(begin, end - begin);
  if (ColumnsOf(line) > kMaxHeadingColumns) return {};
  const std::string key = HeadingKey(line);
  const Label label = SplitLabel(line);
  const bool is_named =
      label.rank != Rank::kNone && label.rank != Rank::kNumber;
  const bool is_title = !key.empty() && key == HeadingKey(page.title);
  return is_title || is_named || IsUnnumberedPart(line) ? line : std::string();
}

}  // namespace

void BookBinder::Add(const std::string& path, HtmlPage page) {
  std::string& text = document_.text;
  const size_t begin = text.empty() ? 0 : text.size() + 1;
  if (!page.text.empty()) {
    if (!text.empty()) text.push_back('\n');
    text += page.text;
  }
  if (std::string title = TitleLine(page); !title.empty()) {
    const size_t place = begin + page.text.find_first_not_of('\n');
    page_titles_.push_back({1, std::move(title), place, path});
  }
  Bound bound = {begin, {}, {}, {}, {}, page.had_frame};
  for (Heading& heading : page.headings) {
    heading.begin += begin;
    bound.headings.emplace(HeadingKey(heading.text), heading.begin);
    bound.titles.emplace(HeadingKey(SplitLabel(heading.text).title),
                         heading.begin);
    heading.anchor =
        heading.anchor.empty() ? path : path + "#" + heading.anchor;
    headings_.push_back(std::move(heading));
  }
  for (Page& print : page.pages) {
    print.begin += begin;
    document_.pages.push_back(std::move(print));
  }
  num_controls_ += page.num_controls;
  had_frame_ = had_frame_ || page.had_frame;
  bound.anchors = std::move(page.anchors);
  bound.links = std::move(page.links);
  bound_.emplace(path, std::move(bound));
}

std::optional<size_t> BookBinder::Locate(const Place& place) const {
  const auto bound = bound_.find(place.path);
  if (bound == bound_.end()) return std::nullopt;
  const auto anchor = bound->second.anchors.find(place.fragment);
  if (anchor != bound->second.anchors.end()) {
    return bound->second.begin + anchor->second;
  }
  if (!place.fragment.empty() && bound->second.had_frame) return std::nullopt;
  return bound->second.begin;
}

std::optional<size_t> BookBinder::LocateEntry(const Place& place,
                                              const std::string& title) const {
  const auto bound = bound_.find(place.path);
  const bool has_place = bound == bound_.end() || place.fragment.empty() ||
                         bound->second.anchors.count(place.fragment) > 0;
  if (has_place) return Locate(place);
  // One of the two may lack the label.
  const std::string key = HeadingKey(title);
  std::optional<size_t> first;
  for (const auto& [places, wanted] :
       {std::pair(&bound->second.headings, key),
        {&bound->second.headings, HeadingKey(SplitLabel(title).title)},
        {&bound->second.titles, key}}) {
    const auto found = places->find(wanted);
    if (found == places->end()) continue;
    first = std::min(first.value_or(found->second), found->second);
  }
  return first.has_value() ? first : Locate(place);
}

bool BookBinder::IsContents(const std::string& path) const {
  const auto bound = bound_.find(path);
  if (bound == bound_.end() || bound_.size() < 4) return false;
  std::unordered_set<std::string> linked;
  for (const HtmlLink& link : bound->second.links) {
    const std::optional<Place> place = Resolve(path, link.href);
    if (place.has_value() && place->path != path &&
        bound_.count(place->path) > 0) {
      linked.insert(place->path);
    }
  }
  return linked.size() * 2 > bound_.size();
}

Document BookBinder::Take() {
  WarnOf(num_controls_, had_frame_, &document_);
  return std::move(document_);
}

}  // namespace tiercel::document
