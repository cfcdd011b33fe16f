#include "offload/kv/view.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/kv/kv_layout.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

using Ranges = std::vector<PositionRange>;

absl::Status CheckRanges(const char* what, const Ranges& ranges) {
  for (const PositionRange& range : ranges) {
    if (range.begin >= 0 && range.end >= range.begin) continue;
    return UsageError(
        "invalid_view",
        absl::StrCat("view: ", what, " positions ", range.begin, " to ",
                     range.end, " (exclusive); need 0 <= begin <= end"));
  }
  return absl::OkStatus();
}

absl::Status Check(const View& view, int layers, int kv_heads) {
  constexpr int64_t kMostSinks = int64_t{1} << 48;
  if (view.sinks < 0 || view.sinks > kMostSinks || view.recent < 1) {
    return UsageError(
        "invalid_view",
        absl::StrCat("view: sinks=", view.sinks, ", recent=", view.recent,
                     "; need sinks 0 to 2^48 and recent at least "
                     "1, since a row reads itself"));
  }
  if (view.full_layers < 0 || view.full_layers > layers) {
    return UsageError("invalid_view",
                      absl::StrCat("view: full_layers=", view.full_layers,
                                   "; need 0 to ", layers));
  }
  if (view.shallow && (!view.selected.empty() || view.recent != 1)) {
    return UsageError("invalid_view",
                      "view: rows that end below have nothing selected and "
                      "nothing recent above");
  }
  const size_t lists = static_cast<size_t>(layers) * kv_heads;
  if (!view.selected.empty() && view.selected.size() != lists) {
    return UsageError(
        "invalid_view",
        absl::StrCat("view: got ", view.selected.size(), " selections; need ",
                     layers, " layers of ", kv_heads, " KV heads, or none"));
  }
  RETURN_IF_ERROR(CheckRanges("pinned", view.pinned));
  for (const Ranges& ranges : view.selected) {
    RETURN_IF_ERROR(CheckRanges("selected", ranges));
  }
  return absl::OkStatus();
}

bool BeginsBefore(const PositionRange& a, const PositionRange& b) {
  return a.begin < b.begin;
}

// Appends the union of two lists, of which the first is sorted, to `out`.
void AppendUnion(const Ranges& sorted, const Ranges& other, Ranges* out) {
  if (!std::is_sorted(other.begin(), other.end(), BeginsBefore)) {
    Ranges in_order = other;
    std::sort(in_order.begin(), in_order.end(), BeginsBefore);
    return AppendUnion(sorted, in_order, out);
  }
  const auto first = static_cast<std::ptrdiff_t>(out->size());
  const auto add = [&](const PositionRange& range) {
    if (range.begin == range.end) return;
    if (std::ssize(*out) > first && range.begin <= out->back().end) {
      out->back().end = std::max(out->back().end, range.end);
    } else {
      out->push_back(range);
    }
  };
  auto a = sorted.begin();
  auto b = other.begin();
  while (a != sorted.end() || b != other.end()) {
    const bool from_a =
        b == other.end() || (a != sorted.end() && BeginsBefore(*a, *b));
    add(from_a ? *a++ : *b++);
  }
}

}  // namespace

absl::StatusOr<BoundView> BoundView::Bind(const View& view, int layers,
                                          int kv_heads, int64_t begin) {
  RETURN_IF_ERROR(Check(view, layers, kv_heads));
  BoundView bound;
  if (view.IsFull()) return bound;
  bound.kv_heads_ = kv_heads;
  bound.begin_ = begin;
  bound.full_layers_ = view.full_layers;
  bound.shallow_ = view.shallow;
  Ranges common;
  AppendUnion({{.begin = begin, .end = begin + view.sinks}}, view.pinned,
              &common);
  if (view.selected.empty()) {
    bound.ranges_ = std::move(common);
    bound.heads_.assign(static_cast<size_t>(kv_heads),
                        {.fixed = bound.ranges_, .recent = view.recent});
    return bound;
  }
  bound.layers_alike_ = false;
  std::vector<size_t> ends;
  for (const Ranges& selected : view.selected) {
    AppendUnion(common, selected, &bound.ranges_);
    ends.push_back(bound.ranges_.size());
  }
  size_t first = 0;
  for (const size_t end : ends) {
    bound.heads_.push_back(
        {.fixed = std::span(bound.ranges_).subspan(first, end - first),
         .recent = view.recent});
    first = end;
  }
  return bound;
}

const HeadView* BoundView::Heads(int layer) const {
  if (IsFull() || layer < full_layers_) return nullptr;
  return heads_.data() + (layers_alike_ ? 0 : int64_t{layer} * kv_heads_);
}

Ranges BoundView::Deep(int64_t begin, int64_t end) const {
  if (!shallow_) return {{.begin = begin, .end = end}};
  Ranges deep;
  for (PositionRange range : ranges_) {
    range = {std::max(begin, range.begin), std::min(end, range.end)};
    if (range.begin < range.end) deep.push_back(range);
  }
  return deep;
}

bool BoundView::AnyDeep(int64_t begin, int64_t end) const {
  return !shallow_ ||
         std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const PositionRange& range) {
                       return range.begin < end && begin < range.end;
                     });
}

std::vector<uint8_t> BoundView::PagesRead(int layer, int64_t position,
                                          int64_t rows) const {
  const int64_t first_page = begin_ / kPageTokens;
  const int64_t last_page = (position + rows - 1) / kPageTokens;
  std::vector<uint8_t> read(static_cast<size_t>(last_page + 1 - first_page));
  if (layer < full_layers_) {
    std::fill(read.begin(), read.end(), uint8_t{1});
    return read;
  }
  for (int head = 0; head < kv_heads_; ++head) {
    MarkSeenPages(Heads(layer)[head], begin_, position, rows, first_page, read);
  }
  return read;
}

}  // namespace tiercel
