#include "runtime/generate/thought_splitter.h"

#include <algorithm>

namespace tiercel {
namespace {

// The number of bytes at the end of `text` that may be the beginning of `tag`.
size_t BeginningAtEnd(std::string_view text, std::string_view tag) {
  for (size_t size = std::min(text.size(), tag.size() - 1); size > 0; --size) {
    if (text.ends_with(tag.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

size_t ThoughtSplitter::Advance(std::string_view text, bool whole) {
  while (Move(text, whole)) {
  }
  return at_;
}

bool ThoughtSplitter::Move(std::string_view text, bool whole) {
  const size_t first = text.find_first_not_of(kSpace, at_);
  switch (stage_) {
    case kStart: {
      const std::string_view said =
          first == text.npos ? std::string_view() : text.substr(first);
      if (said.starts_with(tags_.open)) {
        at_ = first + tags_.open.size();
        stage_ = kThought;
        return true;
      }
      if (!whole && tags_.open.starts_with(said)) return false;
      answer_begin_ = 0;
      stage_ = kAnswer;
      return true;
    }
    case kThought: {
      if (thought_begin_ == text.npos) {
        if (first == text.npos) {
          if (whole) at_ = text.size();
          return false;
        }
        at_ = thought_begin_ = first;
      }
      const size_t close = text.find(tags_.close, at_);
      std::string_view thought = text.substr(0, close);
      if (close == text.npos && !whole) {
        thought.remove_suffix(BeginningAtEnd(thought, tags_.close));
      }
      // White space at its end may be that before the tag.
      thought = thought.substr(0, thought.find_last_not_of(kSpace) + 1);
      at_ = std::max(at_, thought.size());
      if (close == text.npos && !whole) return false;
      thought_end_ = at_;
      if (close == text.npos) {
        at_ = text.size();
        return false;
      }
      at_ = closed_at_ = close + tags_.close.size();
      stage_ = kBehind;
      return true;
    }
    case kBehind:
      at_ = std::min(first, text.size());
      if (first == text.npos) return false;
      answer_begin_ = first;
      stage_ = kAnswer;
      return true;
    case kAnswer:
      at_ = text.size();
      return false;
  }
  return false;
}

std::string_view ThoughtSplitter::Within(std::string_view text, size_t begin,
                                         size_t end, size_t first,
                                         size_t last) {
  if (first == text.npos) return {};
  begin = std::max(begin, first);
  end = std::min(end, last);
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

}  // namespace tiercel
