#include "runtime/session/deep_spans.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"

namespace tiercel {

absl::Status DeepSpans::BeginAnswer(const std::vector<int32_t>& tokens,
                                    int64_t end) {
  const auto count = static_cast<int64_t>(tokens.size());
  int64_t tail = depth_.tail;
  if (tail == 0) {
    const bool ends_so =
        !header_.empty() && std::ssize(header_) <= count &&
        std::equal(header_.rbegin(), header_.rend(), tokens.rbegin());
    tail = ends_so ? std::ssize(header_) : 1;
  }
  if (tail > count) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("settings of speed: tail: got ", tail,
                     ", need 1 to the prompt's ", count, " tokens"));
  }
  const int64_t next = begin_ + count - tail;
  end = std::min(end, next);
  if (!depth_.keeps_past) {
    past_.clear();
  } else if (HasAnswer(end)) {
    past_.push_back({answer_begin_, end});
  }
  answer_begin_ = next;
  return absl::OkStatus();
}

void DeepSpans::Truncate(int64_t end) {
  answer_begin_ = std::min(answer_begin_, end);
  for (PositionRange& range : past_) range.end = std::min(range.end, end);
  std::erase_if(past_, [](const PositionRange& range) {
    return range.begin >= range.end;
  });
}

View DeepSpans::Reads() const {
  if (answer_begin_ - begin_ <= depth_.anchor) return View::Full();
  View view = View::Window(depth_.anchor, /*recent=*/1);
  view.full_layers = depth_.cut;
  view.shallow = true;
  view.pinned = past_;
  view.pinned.push_back({answer_begin_, kAllPositions});
  return view;
}

int64_t DeepSpans::Entries(int layers, int64_t end) const {
  int64_t deep = std::max<int64_t>(0, end - answer_begin_);
  // Before the answer lie the anchor, and earlier answers outside it.
  const int64_t anchor_end =
      std::min({begin_ + depth_.anchor, answer_begin_, end});
  deep += anchor_end - begin_;
  for (const PositionRange& range : past_) {
    deep += std::max<int64_t>(
        0, std::min(range.end, end) - std::max(range.begin, anchor_end));
  }
  return depth_.cut * (end - begin_) + (layers - depth_.cut) * deep;
}

}  // namespace tiercel
