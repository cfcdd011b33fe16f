#ifndef TIERCEL_RUNTIME_PASS_STEP_H_
#define TIERCEL_RUNTIME_PASS_STEP_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/device/stream.h"
#include "models/decoder/decoder.h"
#include "offload/kv/layered_kv.h"
#include "offload/tier/ledger.h"
#include "offload/weights/streamed_layers.h"

namespace tiercel {

// The rows of one sequence in a step of several. Its KV has room for them.
struct SequenceStep {
  LayeredKv& kv;
  int64_t rows;
  const int32_t* ids;               // [rows]
  StepObserver* seen_by = nullptr;  // null: none
  // Called when a layer is about to begin; null: nothing is.
  std::function<absl::Status(int layer)> before_layer = nullptr;
  // An error of its KV or observer, after which its hidden states are worthless
  // and the other sequences go on.
  absl::Status status = {};
};

// A step of several sequences: a few rows of each, so that all of them pass
// through a layer at once. A matrix is multiplied by all rows, and each
// sequence's rows attend to its own KV, whose pages may be others', too. By row
// invariance each gets the bits that it would get alone.
struct Step {
  absl::Span<SequenceStep> sequences;
  int layers;               // the first layers, that the rows go through
  DevicePtr<float> hidden;  // [rows of all sequences, hidden]
  StreamedWeights weights = {};
};

// Passes the rows through the layers. The decoder has begun the step, whose
// rows are those of the sequences in their order. `cancelled` ends the step for
// all. Errors, which all sequences share: cancelled; those of the ops.
absl::Status RunStep(const Step& step, Decoder& decoder, Stream& stream,
                     LayeredKv::Cancelled cancelled);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PASS_STEP_H_
