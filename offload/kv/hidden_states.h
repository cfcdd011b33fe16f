#ifndef TIERCEL_OFFLOAD_KV_HIDDEN_STATES_H_
#define TIERCEL_OFFLOAD_KV_HIDDEN_STATES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "offload/kv/layered_kv.h"

namespace tiercel {

// Rows [row, row + rows) of a step, which pass through `layer` at once.
struct RowBlock {
  int layer = 0;
  int64_t row = 0;
  int64_t rows = 0;

  int64_t end() const { return row + rows; }
  friend bool operator==(const RowBlock&, const RowBlock&) = default;
};

// The hidden states of a step's rows on their way through the layers: [rows,
// width] in floats, wherever their bytes live. For every block, in the order in
// which they pass: Begin, Ask for some of those after it, End.
class HiddenStates {
 public:
  using Cancelled = LayeredKv::Cancelled;
  virtual ~HiddenStates() = default;

  // Where the block's states are on the device until its End, as the layer
  // before has left them; of layer 0 they hold anything. Errors: copy_failed,
  // out_of_memory, cancelled; after the last the block may begin again.
  virtual absl::StatusOr<float*> Begin(const RowBlock& block,
                                       Cancelled cancelled) = 0;
  // The first kAhead blocks behind the one that has begun may be asked for, in
  // order, where all of their rows have passed through the layer before.
  static constexpr int kAhead = 2;
  virtual void Ask(const RowBlock& block) = 0;
  // The block has passed through its layer.
  virtual void End(const RowBlock& block) = 0;
};

// All states of the step are on the device.
class WholeStates final : public HiddenStates {
 public:
  // `states` [rows of the step, width] in device memory.
  WholeStates(float* states, int64_t width) : states_(states), width_(width) {}

  absl::StatusOr<float*> Begin(const RowBlock& block,
                               Cancelled /*cancelled*/) override {
    return states_ + block.row * width_;
  }
  void Ask(const RowBlock& /*block*/) override {}
  void End(const RowBlock& /*block*/) override {}

 private:
  float* states_;
  int64_t width_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_HIDDEN_STATES_H_
