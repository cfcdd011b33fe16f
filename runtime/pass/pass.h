#ifndef TIERCEL_RUNTIME_PASS_PASS_H_
#define TIERCEL_RUNTIME_PASS_PASS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/attention/head_view.h"
#include "kernels/device/device_kind.h"
#include "kernels/device/stream.h"
#include "models/decoder/config.h"
#include "models/decoder/decoder.h"
#include "offload/kv/hidden_states.h"
#include "offload/kv/layered_kv.h"
#include "offload/ranks/rank_group.h"
#include "offload/tier/ledger.h"
#include "offload/weights/streamed_layers.h"

namespace tiercel {

// One of the ranks that pass the same rows at the same time, each with its part
// of the model.
struct PassRank {
  RankGroup& group;
  int rank;
  int threads;  // each rank's
};

// Called when a layer has ended.
using AfterLayer = absl::FunctionRef<void(int layer)>;
inline constexpr auto kNothingAfter = [](int) {};

// Rows of one sequence on their way through the layers of a model: of a prompt
// or a sweep. The KV has room for them, and the decoder has begun their step.
struct Pass {
  static constexpr int kAllLayers = std::numeric_limits<int>::max();

  LayeredKv& kv;
  int64_t rows;
  int64_t before;  // positions of the KV before them
  int layers;      // the first layers, that the rows go through
  // Ranges of the rows that go on after the first `shallow_layers`, in order.
  std::vector<PositionRange> deep = {};
  int shallow_layers = kAllLayers;
  // Bytes of all weights that a row is multiplied with in the whole model.
  int64_t weight_bytes_per_token;
  HiddenStates& hidden;
  StreamedWeights weights = {};
  // [rows]: the ids whose embeddings enter the first layer; null: `hidden`
  // already holds the rows.
  const int32_t* ids = nullptr;
  StepObserver* seen_by = nullptr;  // null: none
  AfterLayer after_layer = kNothingAfter;
  // The rank that computes this part of the pass; null: there is one rank.
  const PassRank* rank = nullptr;
};

// The progress of a pass: rows before `row` have passed through `layer`.
struct PassPoint {
  int layer = 0;
  int64_t row = 0;

  friend bool operator==(const PassPoint&, const PassPoint&) = default;
};

// Reports `done` of `total` token-layers: one for each layer of a row. Returns
// false to end the pass.
using PassProgress = absl::FunctionRef<bool(uint64_t done, uint64_t total)>;
// Goes on without a report.
inline constexpr auto kNoProgress = [](uint64_t, uint64_t) { return true; };

// Goes on at `point`, and stores its progress there. Layer-major: every row
// passes through a layer before any enters the next, so that a layer's weights
// and KV are needed once per prompt, not once per block of its rows. The price
// is one hidden state per row, which must be kept.
//
// `progress` and `cancelled` are called before every block of rows, `progress`
// at the end too. Of several ranks rank 0 alone calls them, and the answer
// holds for all: if one rank cannot go on, none begins the block. Errors:
// cancelled; those of the ops, the KV and the observer.
absl::Status RunPass(const Pass& pass, Decoder& decoder, Stream& stream,
                     PassProgress progress, LayeredKv::Cancelled cancelled,
                     PassPoint* point);

// The number of rows that go through a layer at once after `before` positions:
// enough to keep the device busy, and few enough that a cancellation is
// answered in about 100 ms, on a GPU in 300. Never more than for `before` = 0.
int64_t PromptRowsAtOnce(const ModelConfig& config,
                         int64_t weight_bytes_per_token, DeviceKind device,
                         int threads, int64_t before);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PASS_PASS_H_
