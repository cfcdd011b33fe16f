#include "offload/retrieval/compact_kv.h"

#include <algorithm>
#include <utility>

#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr int32_t kNone = -1;

}  // namespace

absl::StatusOr<CompactKv> CompactKv::Create(DeviceMemory& memory,
                                            const Shape& shape, int64_t begin) {
  ASSIGN_OR_RETURN(
      DeviceArray<std::byte> bytes,
      DeviceArray<std::byte>::Create(memory, shape.Bytes(), "retrieval view"));
  return CompactKv(shape, begin, std::move(bytes));
}

CompactKv::CompactKv(const Shape& shape, int64_t begin,
                     DeviceArray<std::byte> memory)
    : shape_(shape),
      begin_(begin),
      memory_(std::move(memory)),
      chunks_(static_cast<size_t>(shape.layers * shape.layout.kv_heads),
              std::vector<int32_t>(static_cast<size_t>(shape.chunks), kNone)),
      ranges_(static_cast<size_t>(shape.layout.kv_heads)),
      views_(static_cast<size_t>(shape.layout.kv_heads)) {
  table_.reserve(static_cast<size_t>(shape.ChunkPages() + shape.recent_pages));
}

int64_t CompactKv::RecentRoom() const {
  return shape_.recent_pages * kPageTokens - recent_begin_ % kPageTokens;
}

void CompactKv::Reset(int64_t recent_begin, int64_t end) {
  for (std::vector<int32_t>& chunks : chunks_) {
    std::fill(chunks.begin(), chunks.end(), kNone);
  }
  recent_begin_ = recent_begin;
  end_ = end;
}

void CompactKv::Choose(int layer, int head, std::span<const int32_t> chunks,
                       std::vector<KvRun>* missing) {
  std::vector<int32_t>& places = ChunksOf(layer, head);
  // The marks of chunks that are wanted: to be filled, or there already.
  enum : uint8_t { kMissing = 1, kThere = 2 };
  if (!chunks.empty() && std::ssize(marks_) <= chunks.back()) {
    marks_.resize(static_cast<size_t>(chunks.back()) + 1);
  }
  const auto mark = [&](int32_t chunk) -> uint8_t& {
    return marks_[static_cast<size_t>(chunk)];
  };
  for (const int32_t chunk : chunks) mark(chunk) = kMissing;
  const auto wanted = [&](int32_t chunk) {
    return chunk < std::ssize(marks_) && mark(chunk) != 0;
  };
  // The places in use come first, as many as there are chunks. Those behind
  // them, and those of chunks that are not wanted any more, become free.
  const auto in_use = places.begin() + std::ssize(chunks);
  for (auto place = places.begin(); place != in_use; ++place) {
    if (*place != kNone && !wanted(*place)) *place = kNone;
    if (*place != kNone) mark(*place) = kThere;
  }
  std::fill(in_use, places.end(), kNone);
  auto place = places.begin();
  for (int32_t chunk : chunks) {
    if (std::exchange(mark(chunk), uint8_t{0}) == kThere) continue;
    place = std::find(place, in_use, kNone);
    *place = chunk;
    const int64_t cells = (place - places.begin()) * shape_.chunk;
    const int64_t first = (begin_ / shape_.chunk + chunk) * shape_.chunk;
    const int64_t from = std::max(first, begin_);
    const DevicePtr<std::byte> page = Page(layer, cells / kPageTokens);
    const auto cell = static_cast<int>(cells % kPageTokens + from - first);
    missing->push_back({.layer = layer,
                        .head = head,
                        .position = from,
                        .rows = first + shape_.chunk - from,
                        .k = page + shape_.layout.KOffset(head, cell),
                        .v = page + shape_.layout.VOffset(head, cell)});
  }
}

std::span<const int32_t> CompactKv::Chosen(int layer, int head) const {
  const std::vector<int32_t>& places = chunks_[PlacesOf(layer, head)];
  return {places.begin(), std::find(places.begin(), places.end(), kNone)};
}

void CompactKv::Recent(int layer, int64_t begin, int64_t end,
                       std::vector<KvRun>* runs) {
  while (begin < end) {
    const int64_t page = begin / kPageTokens;
    const int64_t stop = std::min(end, (page + 1) * kPageTokens);
    const auto cell = static_cast<int>(begin % kPageTokens);
    for (int head = 0; head < shape_.layout.kv_heads; ++head) {
      const DevicePtr<std::byte> bytes = RingPage(layer, page);
      runs->push_back({.layer = layer,
                       .head = head,
                       .position = begin,
                       .rows = stop - begin,
                       .k = bytes + shape_.layout.KOffset(head, cell),
                       .v = bytes + shape_.layout.VOffset(head, cell)});
    }
    begin = stop;
  }
}

absl::StatusOr<KvPages> CompactKv::BeginLayer(int layer,
                                              Cancelled /*cancelled*/) {
  table_.clear();
  for (int64_t i = 0; i < shape_.ChunkPages(); ++i) {
    table_.push_back(Page(layer, i));
  }
  const int64_t first = recent_begin_ / kPageTokens;
  for (int64_t i = 0; i < shape_.recent_pages; ++i) {
    table_.push_back(RingPage(layer, first + i));
  }
  for (int head = 0; head < shape_.layout.kv_heads; ++head) {
    const std::vector<int32_t>& places = ChunksOf(layer, head);
    const int64_t have = std::ssize(Chosen(layer, head));
    std::array<PositionRange, 6>& ranges = ranges_[static_cast<size_t>(head)];
    views_[static_cast<size_t>(head)] = layer < above_.layers
                                            ? SeenBelow(have, ranges)
                                            : SeenAbove(places, have, ranges);
  }
  return KvPages{.layout = shape_.layout,
                 .pages = table_.data(),
                 .first_page = 0,
                 .num_pages = std::ssize(table_),
                 .begin = 0,
                 .end = CellOf(end_),
                 .view = views_.data()};
}

// The view of a layer below above_.layers: the head's chunks and the newest
// positions, with a window the sinks and the last ones alone.
HeadView CompactKv::SeenBelow(int64_t chunks,
                              std::span<PositionRange, 6> ranges) const {
  // The sequence may begin within the first chunk.
  ranges[0] = {begin_ % shape_.chunk, chunks * shape_.chunk};
  size_t num = chunks > 0 ? 1 : 0;
  if (window_ > 0) {
    ranges[0].end = std::min(ranges[0].end, shape_.sinks * shape_.chunk);
  } else {
    ranges[num++] = {CellOf(recent_begin_), kAllPositions};
  }
  const int64_t newest = std::min(window_, end_ - recent_begin_ + 1);
  return {.fixed = ranges.first(num), .recent = std::max<int64_t>(newest, 1)};
}

// The view of a layer from above_.layers on: the sinks and the answer alone,
// both of which may begin or end within a chunk.
HeadView CompactKv::SeenAbove(const std::vector<int32_t>& places,
                              int64_t chunks,
                              std::span<PositionRange, 6> ranges) const {
  size_t num = 0;
  const auto add = [&](int64_t begin, int64_t end) {
    if (begin < end) ranges[num++] = {begin, end};
  };
  const int64_t sinks_end = begin_ + above_.sinks;
  const int64_t first = begin_ % shape_.chunk;
  const int64_t sinks = std::min(shape_.sinks, chunks) * shape_.chunk;
  add(first, std::min(sinks, first + above_.sinks));
  if (window_ == 0) {
    const int64_t first_chunk = begin_ / shape_.chunk;
    add(std::max(first + above_.sinks,
                 above_.answer_begin - first_chunk * shape_.chunk),
        sinks);
    const int64_t answer_chunk =
        above_.answer_begin / shape_.chunk - first_chunk;
    const auto found =
        std::find(places.begin() + std::min(shape_.sinks, chunks),
                  places.begin() + chunks, static_cast<int32_t>(answer_chunk));
    const int64_t place = (found - places.begin()) * shape_.chunk;
    add(sinks, place);
    if (place < chunks * shape_.chunk) {
      add(place + above_.answer_begin % shape_.chunk, chunks * shape_.chunk);
    }
  }
  add(CellOf(recent_begin_), CellOf(std::max(recent_begin_, sinks_end)));
  const int64_t answer =
      std::max({above_.answer_begin, recent_begin_, sinks_end});
  if (window_ == 0) {
    add(CellOf(answer), kAllPositions);
    return {.fixed = ranges.first(num), .recent = 1};
  }
  const int64_t newest = std::min(window_, end_ - answer + 1);
  return {.fixed = ranges.first(num), .recent = std::max<int64_t>(newest, 1)};
}

DevicePtr<std::byte> CompactKv::Page(int layer, int64_t index) {
  const int64_t pages = shape_.ChunkPages() + shape_.recent_pages;
  return memory_.data() + (layer * pages + index) * shape_.layout.PageBytes();
}

}  // namespace tiercel
