#ifndef TIERCEL_OFFLOAD_RETRIEVAL_COMPACT_KV_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_COMPACT_KV_H_

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "offload/kv/kv_run.h"
#include "offload/kv/layered_kv.h"

namespace tiercel {

// The KV of a sequence that a draft reads and writes, gathered on the device:
// per layer and KV head some chunks of it, and all of its newest positions.
//
//   cells    0 ................ S | S ....................... | ...
//   hold     chunks of each head    positions recent_begin .. end   a draft's
//
// Attention takes cells for positions, and a head's view says which of them it
// has: keys are stored rotated, so that their place does not matter. Each head
// has chunks of its own; the newest positions lie in pages as they do in the
// store, in a ring that drops its oldest page.
//
// Positions up to `end` have the target's own K and V; those that a draft
// writes beyond are provisional, and the sweep that checks them writes over
// them.
class CompactKv final : public LayeredKv {
 public:
  struct Shape {
    KvLayout layout = {};
    int layers = 0;
    int chunk = 32;            // positions; divides kPageTokens
    int64_t chunks = 0;        // chunks of a head, at most
    int64_t sinks = 1;         // the first chunks of the sequence
    int64_t recent_pages = 0;  // pages of the ring

    int64_t ChunkPages() const {
      return (chunks * chunk + kPageTokens - 1) / kPageTokens;
    }
    int64_t Bytes() const {
      return AlignedBytes((ChunkPages() + recent_pages) * layers *
                          layout.PageBytes());
    }
  };

  // Above the first `layers` drafts see only the first `sinks` positions of
  // the sequence, and those from `answer_begin` on.
  struct Above {
    int layers = std::numeric_limits<int>::max();
    int64_t sinks = 0;
    int64_t answer_begin = 0;
  };

  // The sequence begins at `begin`. Errors: out_of_memory.
  static absl::StatusOr<CompactKv> Create(DeviceMemory& memory,
                                          const Shape& shape, int64_t begin);

  const Shape& shape() const { return shape_; }
  int64_t end() const { return end_; }
  int64_t recent_begin() const { return recent_begin_; }
  // The positions for which the ring has room from recent_begin on.
  int64_t RecentRoom() const;

  // Empties the view, and makes room for `recent_begin` <= positions < `end`.
  // Recent and Choose then say what to fill.
  void Reset(int64_t recent_begin, int64_t end);
  // Forgets the positions before, or all from `end` on.
  void DropBefore(int64_t recent_begin) { recent_begin_ = recent_begin; }
  void Truncate(int64_t end) { end_ = end; }
  void Extend(int64_t rows) { end_ += rows; }

  // Gives `head` of `layer` the `chunks`, counted from the one in which the
  // sequence begins: sorted, at most shape.chunks, the sinks always among them
  // (so that they stay in the first places), all before recent_begin. Unless
  // they become fewer, chunks that it had stay where they are; the caller must
  // fill the `missing` runs, which it lacks.
  void Choose(int layer, int head, std::span<const int32_t> chunks,
              std::vector<KvRun>* missing);
  // The chunks that `head` of `layer` has, in the order of their places.
  std::span<const int32_t> Chosen(int layer, int head) const;
  // Appends the runs of positions begin <= j < end of a layer in the ring; they
  // may lie beyond end().
  void Recent(int layer, int64_t begin, int64_t end, std::vector<KvRun>* runs);

  // The cell of a position from recent_begin on. The ring has cells of those
  // that are too far ahead for a draft, which branches use (BranchKv).
  int64_t CellOf(int64_t position) const {
    return (shape_.ChunkPages() - recent_begin_ / kPageTokens) * kPageTokens +
           position;
  }

  // A draft's step has rows at `end` and after. With a `window` above 0 it has
  // one row, which sees only the sinks and the last `window` positions.
  void SetWindow(int64_t window) { window_ = window; }
  void ShowAbove(const Above& above) { above_ = above; }
  const Above& above() const { return above_; }
  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override;
  void EndLayer(int /*layer*/) override {}

 private:
  CompactKv(const Shape& shape, int64_t begin, DeviceArray<std::byte> memory);

  size_t PlacesOf(int layer, int head) const {
    return static_cast<size_t>(int64_t{layer} * shape_.layout.kv_heads + head);
  }
  std::vector<int32_t>& ChunksOf(int layer, int head) {
    return chunks_[PlacesOf(layer, head)];
  }
  DevicePtr<std::byte> Page(int layer, int64_t index);
  HeadView SeenBelow(int64_t chunks, std::span<PositionRange, 6> ranges) const;
  HeadView SeenAbove(const std::vector<int32_t>& places, int64_t chunks,
                     std::span<PositionRange, 6> ranges) const;
  DevicePtr<std::byte> RingPage(int layer, int64_t page) {
    return Page(layer, shape_.ChunkPages() + page % shape_.recent_pages);
  }

  Shape shape_;
  int64_t begin_;
  DeviceArray<std::byte> memory_;  // [layer][chunk pages, then the ring][page]
  // [layer, head]: the chunk in each place; -1: none.
  std::vector<std::vector<int32_t>> chunks_;
  int64_t recent_begin_ = 0;
  int64_t end_ = 0;
  int64_t window_ = 0;
  Above above_;
  std::vector<uint8_t> marks_;  // [chunk] of the current head; zeros between
  // KvPages of the current layer point to these.
  std::vector<DevicePtr<std::byte>> table_;
  std::vector<std::array<PositionRange, 6>> ranges_;  // [head]
  std::vector<HeadView> views_;                       // [head]
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_COMPACT_KV_H_
