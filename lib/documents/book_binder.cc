#include "lib/documents/book_binder.h"

#include <unordered_set>

namespace tiercel::document {

void BookBinder::Add(const std::string& path, HtmlPage page) {
  std::string& text = document_.text;
  const size_t begin = text.empty() ? 0 : text.size() + 1;
  if (!page.text.empty()) {
    if (!text.empty()) text.push_back('\n');
    text += page.text;
  }
  for (Heading& heading : page.headings) {
    heading.begin += begin;
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
  bound_.emplace(path, Bound{begin, std::move(page.anchors),
                             std::move(page.links), page.had_frame});
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

bool BookBinder::IsContents(const std::string& path) const {
  const auto bound = bound_.find(path);
  if (bound == bound_.end() || bound_.size() < 4) return false;
  std::unordered_set<std::string> linked;
  for (const std::string& link : bound->second.links) {
    const std::optional<Place> place = Resolve(path, link);
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
