#include "runtime/session/sequence_extent.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"

namespace tiercel {

absl::Status SequenceExtent::BeginAnswer(const std::vector<int32_t>& tokens,
                                         int64_t end) {
  const auto count = static_cast<int64_t>(tokens.size());
  int64_t tail = extent_.tail;
  if (tail == 0) {
    const bool ends_so =
        !header_.empty() && std::ssize(header_) <= count &&
        std::equal(header_.rbegin(), header_.rend(), tokens.rbegin());
    tail = ends_so ? std::ssize(header_) : 1;
  }
  if (tail > count) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("tail: got ", tail, ", need 1 to the prompt's ", count,
                     " tokens"));
  }
  const int64_t next = begin_ + count - tail;
  end = std::min(end, next);
  if (!extent_.keeps_answers) {
    past_.clear();
  } else if (HasAnswer(end)) {
    past_.push_back({answer_begin_, end});
  }
  answer_begin_ = next;
  return absl::OkStatus();
}

void SequenceExtent::Truncate(int64_t end) {
  answer_begin_ = std::min(answer_begin_, end);
  for (PositionRange& range : past_) range.end = std::min(range.end, end);
  std::erase_if(past_, [](const PositionRange& range) {
    return range.begin >= range.end;
  });
}

View SequenceExtent::Reads() const {
  if (answer_begin_ - begin_ <= extent_.sinks) return View::Full();
  View view = View::Window(extent_.sinks, /*recent=*/1);
  view.full_layers = extent_.full_layers;
  view.shallow = true;
  view.pinned = past_;
  view.pinned.push_back({answer_begin_, kAllPositions});
  return view;
}

int64_t SequenceExtent::Entries(int layers, int64_t end) const {
  int64_t deep = std::max<int64_t>(0, end - answer_begin_);
  // Before the answer lie the sinks, and earlier answers outside them.
  const int64_t sinks_end =
      std::min({begin_ + extent_.sinks, answer_begin_, end});
  deep += sinks_end - begin_;
  for (const PositionRange& range : past_) {
    deep += std::max<int64_t>(
        0, std::min(range.end, end) - std::max(range.begin, sinks_end));
  }
  return extent_.full_layers * (end - begin_) +
         (layers - extent_.full_layers) * deep;
}

}  // namespace tiercel
