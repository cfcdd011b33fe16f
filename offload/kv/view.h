#ifndef TIERCEL_OFFLOAD_KV_VIEW_H_
#define TIERCEL_OFFLOAD_KV_VIEW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/attention/head_view.h"

namespace tiercel {

// The positions that a pass of the model reads, whatever policy chose them: in
// layer l and KV head h, the row at position t reads
//
//   sinks U pinned U selected[l, h] U the last `recent` up to t
//
// as far as these exist and are not after t. Positions are absolute, and keys
// keep the rotation they were stored with. Ranges may overlap, touch, be empty
// and come in any order.
struct View {
  int64_t sinks = 0;  // the first positions of the sequence, wherever it begins
  std::vector<PositionRange> pinned;
  // [layer * kv_heads + kv_head]; empty: nothing is selected in any head.
  std::vector<std::vector<PositionRange>> selected;
  int64_t recent = kAllPositions;  // at least 1: a row reads itself
  // The first `full_layers` layers read everything; all else here applies to
  // the layers above. `shallow`: a row that is neither a sink nor pinned ends
  // after these layers, and has no K and V above (SPEED, arXiv 2605.06105).
  int full_layers = 0;
  bool shallow = false;

  static View Full() { return {}; }
  static View Window(int64_t sinks, int64_t recent) {
    View window;
    window.sinks = sinks;
    window.recent = recent;
    return window;
  }

  bool IsFull() const { return recent == kAllPositions; }
  // Returns this view for a sequence of at most `context` positions: the full
  // view if its window covers them all.
  View Within(int64_t context) const {
    return recent >= context ? Full() : *this;
  }
  friend bool operator==(const View&, const View&) = default;
};

// A view in the form that steps of one sequence use: per layer and KV head, the
// sorted disjoint ranges that are the same for all rows, and the length of the
// window. Ranges may reach beyond the end of the sequence; readers stop there.
class BoundView {
 public:
  // The sequence begins at `begin`. Errors: invalid_view.
  static absl::StatusOr<BoundView> Bind(const View& view, int layers,
                                        int kv_heads, int64_t begin);

  BoundView() = default;  // the full view
  BoundView(BoundView&&) = default;
  BoundView& operator=(BoundView&&) = default;

  bool IsFull() const { return heads_.empty(); }
  // The views of a layer's heads, [kv_heads]; null: everything. They are valid
  // until this is destroyed or assigned to.
  const HeadView* Heads(int layer) const;

  // Returns true if rows may end after the first full_layers() layers.
  bool shallow() const { return shallow_; }
  int full_layers() const { return full_layers_; }
  // The rows in [begin, end) that go through all layers, in order.
  std::vector<PositionRange> Deep(int64_t begin, int64_t end) const;
  // Returns true if there are any such rows.
  bool AnyDeep(int64_t begin, int64_t end) const;

  // Marks the pages that the rows [position, position + rows) read in some KV
  // head of `layer`: [page of the sequence], 1 or 0. Not for a full view.
  std::vector<uint8_t> PagesRead(int layer, int64_t position,
                                 int64_t rows) const;
  bool LayersAreAlike() const { return layers_alike_ && full_layers_ == 0; }

 private:
  int kv_heads_ = 0;
  int64_t begin_ = 0;
  int full_layers_ = 0;
  bool shallow_ = false;
  bool layers_alike_ = true;           // all layers above full_layers_ are
  std::vector<PositionRange> ranges_;  // all heads', head by head
  std::vector<HeadView> heads_;        // [layers, or 1 if alike, kv_heads]
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_VIEW_H_
