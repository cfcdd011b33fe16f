#ifndef TIERCEL_RUNTIME_PASS_STEP_H_
#define TIERCEL_RUNTIME_PASS_STEP_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/attention/head_view.h"
#include "kernels/device/stream.h"
#include "models/decoder/decoder.h"
#include "offload/kv/layered_kv.h"
#include "offload/weights/streamed_layers.h"
#include "runtime/pass/pass.h"

namespace tiercel {

// The rows of one sequence in a step of several. Its KV has room for them.
struct SequenceStep {
  LayeredKv& kv;
  int64_t rows;
  const int32_t* ids;       // [rows]
  int64_t position;         // the first row's
  int layers;               // the first layers, that the rows go through
  int64_t rope_length = 0;  // the session's
  // Ranges of the rows that go on after the first `shallow_layers`, in order.
  std::vector<PositionRange> deep = {};
  int shallow_layers = Pass::kAllLayers;
  // Sees rows that all go through the same layers; null: none.
  StepObserver* seen_by = nullptr;
  // Another KV, of the same layout and with room for them, that gets the rows'
  // K and V too; null: none.
  LayeredKv* copied_to = nullptr;
  // Called when a layer is about to begin; null: nothing is.
  std::function<absl::Status(int layer)> before_layer = nullptr;

  // An error of its KV or observer, after which its hidden states are worthless
  // and the other sequences go on.
  absl::Status status = {};
  // The place of its last row among all rows of the step. Rows that all go
  // through the same layers have the places before it.
  int64_t last_row = -1;
};

// A step of several sequences: a few rows of each, so that all of them pass
// through a layer at once. A matrix is multiplied by all rows, and each
// sequence's rows attend to its own KV, whose pages may be others', too. By row
// invariance each gets the bits that it would get alone.
struct Step {
  absl::Span<SequenceStep> sequences;
  DevicePtr<float> hidden;  // [rows of all sequences, hidden]
  StreamedWeights weights = {};
  // The rank that computes this part of the step; null: there is one rank.
  const PassRank* rank = nullptr;
};

// Passes the rows through the layers, all ranks at the same time. `cancelled`,
// which rank 0 asks, ends the step for all. A sequence's error is the same on
// all ranks. Errors, which all sequences share: cancelled; those of the ops.
absl::Status RunStep(const Step& step, Decoder& decoder, Stream& stream,
                     LayeredKv::Cancelled cancelled);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PASS_STEP_H_
