#include "runtime/generate/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace tiercel {

StopMatcher::StopMatcher(std::vector<std::string> stops)
    : stops_(std::move(stops)) {}

std::string StopMatcher::Push(std::string_view piece) {
  held_.append(piece);
  size_t begin = std::string::npos;
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t at_end = at + stop.size();
    if (end == std::string::npos || at_end < end ||
        (at_end == end && at < begin)) {
      begin = at;
      end = at_end;
    }
  }
  size_t certain = begin;
  if (begin != std::string::npos) {
    matched_ = true;
  } else {
    size_t hold = 0;
    for (const std::string& stop : stops_) {
      size_t n = std::min(stop.size() - 1, held_.size());
      while (n > hold &&
             !held_.ends_with(std::string_view(stop).substr(0, n))) {
        --n;
      }
      hold = std::max(hold, n);
    }
    certain = held_.size() - hold;
  }
  std::string text = held_.substr(0, certain);
  held_.erase(0, certain);
  return text;
}

std::string StopMatcher::Finish() {
  return matched_ ? std::string() : std::exchange(held_, std::string());
}

}  // namespace tiercel
