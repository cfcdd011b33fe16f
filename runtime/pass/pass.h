#ifndef TIERCEL_RUNTIME_PASS_PASS_H_
#define TIERCEL_RUNTIME_PASS_PASS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/attention/head_view.h"
#include "kernels/machine/stream.h"
#include "models/decoder/config.h"
#include "models/decoder/decoder.h"
#include "offload/kv/hidden_states.h"
#include "offload/kv/layered_kv.h"
#include "offload/ranks/rank_group.h"

namespace tiercel {

// One of the ranks that pass the same rows, each its part, at the same time.
struct PassRank {
  RankGroup& group;
  int rank;
  int threads;  // of each
};

// Rows on their way through the layers of a model: of a prompt, a sweep or a
// draft. The KV has room for them, and the decoder has begun their step.
struct Pass {
  static constexpr int kAllLayers = std::numeric_limits<int>::max();

  LayeredKv& kv;
  int64_t rows;
  int64_t before;  // positions of the KV before them
  int layers;      // the first so many
  // The rows that go on after the first `shallow_layers`, in order.
  std::vector<PositionRange> deep = {};
  int shallow_layers = kAllLayers;
  // All weights that a row meets on its way through the whole model.
  int64_t weight_bytes_per_token;
  HiddenStates& hidden;
  // [rows]: looked up before the first layer; null: what they are is there.
  const int32_t* ids = nullptr;
  StepObserver* seen_by = nullptr;  // null: nobody
  // It says whose part of the pass this is; null: there is one rank.
  const PassRank* rank = nullptr;
};

// How far a pass has come: rows before `row` have passed through `layer`.
struct PassPoint {
  int layer = 0;
  int64_t row = 0;

  friend bool operator==(const PassPoint&, const PassPoint&) = default;
};

// False ends the pass. `done` of `total` token-layers, a layer of a row each.
using PassProgress = absl::FunctionRef<bool(uint64_t done, uint64_t total)>;

// Goes on at `point`, and leaves there how far it came. Layer-major: every row
// passes through a layer before any enters the next, so that a layer's weights
// and KV are wanted once per prompt, not once per block of its rows. What must
// be somewhere is one hidden state per row.
//
// `progress` and `cancelled` are asked before every block of rows, `progress`
// at the end too; of several ranks rank 0 asks, and what it hears goes for all:
// where one of them cannot go on, none begins the block. Errors: cancelled;
// those of the ops, the KV and the observer.
absl::Status RunPass(const Pass& pass, Decoder& decoder, Stream& stream,
                     PassProgress progress, LayeredKv::Cancelled cancelled,
                     PassPoint* point);

// Rows of a pass that pass through a layer at once after `before` positions: as
// many as fill the machine, and of these as few as answer a cancellation in
// about 100 ms. Never more than after none.
int64_t PromptRowsAtOnce(const ModelConfig& config,
                         int64_t weight_bytes_per_token, int threads,
                         int64_t before);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PASS_PASS_H_
