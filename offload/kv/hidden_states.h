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
// width] in floats, wherever their bytes live. The caller calls, for every
// block in the order in which they pass: Begin, Ask for some of the blocks
// after it, End.
class HiddenStates {
 public:
  using Cancelled = LayeredKv::Cancelled;
  virtual ~HiddenStates() = default;

  // Returns the block's states on the device, as the layer before has left
  // them; before layer 0 they are undefined. They stay there until End. Errors:
  // copy_failed, out_of_memory; cancelled, after which the block may begin
  // again.
  virtual absl::StatusOr<DevicePtr<float>> Begin(const RowBlock& block,
                                                 Cancelled cancelled) = 0;
  // Asks for a block in advance: one of the first kAhead blocks after the one
  // that has begun, in order, if all of its rows have passed through the layer
  // before.
  static constexpr int kAhead = 2;
  virtual void Ask(const RowBlock& block) = 0;
  // Says that the block has passed through its layer.
  virtual void End(const RowBlock& block) = 0;
};

// All states of the step are on the device.
class WholeStates final : public HiddenStates {
 public:
  // `states` is [rows of the step, width].
  WholeStates(DevicePtr<float> states, int64_t width)
      : states_(states), width_(width) {}

  absl::StatusOr<DevicePtr<float>> Begin(const RowBlock& block,
                                         Cancelled /*cancelled*/) override {
    return states_ + block.row * width_;
  }
  void Ask(const RowBlock& /*block*/) override {}
  void End(const RowBlock& /*block*/) override {}

 private:
  DevicePtr<float> states_;
  int64_t width_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_HIDDEN_STATES_H_
