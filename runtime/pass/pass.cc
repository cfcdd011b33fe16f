#include "runtime/pass/pass.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

namespace {

// The order of a pass: the rows that go through each layer, in blocks, and the
// progress that they make.
class PassRows {
 public:
  PassRows(const Pass& pass, const ModelConfig& config, DeviceKind device,
           int threads)
      : pass_(pass),
        config_(config),
        device_(device),
        threads_(threads),
        all_({{.begin = 0, .end = pass.rows}}),
        deep_(pass.deep),
        shallow_(std::min(pass.shallow_layers, pass.layers)),
        layers_(pass.layers) {}

  // The first block of `layer` that begins at or after `row`.
  std::optional<RowBlock> Block(int layer, int64_t row) const {
    for (const PositionRange& range : In(layer)) {
      const int64_t first = std::max(row, range.begin);
      if (first >= range.end) continue;
      const int64_t at_once =
          PromptRowsAtOnce(config_, pass_.weight_bytes_per_token, device_,
                           threads_, pass_.before + first);
      return RowBlock{layer, first, std::min(range.end - first, at_once)};
    }
    return std::nullopt;
  }
  // The block that passes after `block`.
  std::optional<RowBlock> After(const RowBlock& block) const {
    std::optional<RowBlock> next = Block(block.layer, block.end());
    for (int layer = block.layer + 1; !next.has_value() && layer < layers_;
         ++layer) {
      next = Block(layer, 0);
    }
    return next;
  }
  uint64_t Total() const { return Done(layers_, 0); }
  uint64_t Done(const PassPoint& point) const {
    return Done(point.layer, Before(In(point.layer), point.row));
  }

 private:
  const std::vector<PositionRange>& In(int layer) const {
    return layer < shallow_ ? all_ : deep_;
  }
  // Token-layers that are done once all layers before `layer` are, and `rows`
  // rows of `layer` itself.
  uint64_t Done(int layer, int64_t rows) const {
    constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
    return static_cast<uint64_t>(
        std::min(layer, shallow_) * Before(all_, kEnd) +
        std::max(layer - shallow_, 0) * Before(deep_, kEnd) + rows);
  }
  static int64_t Before(const std::vector<PositionRange>& ranges, int64_t row) {
    int64_t count = 0;
    for (const PositionRange& range : ranges) {
      count += std::max<int64_t>(0, std::min(range.end, row) - range.begin);
    }
    return count;
  }

  const Pass& pass_;
  const ModelConfig& config_;
  const DeviceKind device_;
  const int threads_;
  const std::vector<PositionRange> all_;
  const std::vector<PositionRange>& deep_;
  const int shallow_;
  const int layers_;
};

// Prefetches the hidden states of the blocks after `now` that have already
// passed through the layer before.
void AskAhead(const PassRows& rows, const RowBlock& now, HiddenStates& hidden) {
  RowBlock last = now;
  for (int i = 0; i < HiddenStates::kAhead; ++i) {
    const std::optional<RowBlock> next = rows.After(last);
    if (!next.has_value() || next->layer > now.layer + 1 ||
        (next->layer > now.layer && next->end() > now.row)) {
      return;
    }
    hidden.Ask(*next);
    last = *next;
  }
}

}  // namespace

absl::Status RunPass(const Pass& pass, Decoder& decoder, Stream& stream,
                     PassProgress progress, LayeredKv::Cancelled cancelled,
                     PassPoint* point) {
  const int threads =
      pass.rank != nullptr ? pass.rank->threads : stream.pool().num_threads();
  const PassRows rows_of(pass, decoder.config(), stream.device(), threads);
  const uint64_t total = rows_of.Total();
  const bool asks = pass.rank == nullptr || pass.rank->rank == 0;
  const auto agree = [&pass](const absl::Status& mine) {
    return pass.rank != nullptr ? pass.rank->group.Meet(pass.rank->rank, mine)
                                : mine;
  };
  for (;;) {
    const absl::StatusOr<KvPages> pages =
        pass.kv.BeginLayer(point->layer, cancelled);
    bool agreed = false;
    while (const std::optional<RowBlock> block =
               rows_of.Block(point->layer, point->row)) {
      point->row = block->row;
      absl::Status ready = pages.status();
      DevicePtr<float> hidden;
      if (ready.ok()) {
        const absl::StatusOr<DevicePtr<float>> begun =
            pass.hidden.Begin(*block, cancelled);
        ready = begun.status();
        if (begun.ok()) hidden = *begun;
      }
      if (ready.ok() && asks &&
          (cancelled() || !progress(rows_of.Done(*point), total))) {
        ready = CancelledError();
      }
      RETURN_IF_ERROR(agree(ready));
      agreed = true;
      AskAhead(rows_of, *block, pass.hidden);
      if (block->layer == 0 && pass.ids != nullptr) {
        RETURN_IF_ERROR(
            decoder.Embed(stream, pass.ids + block->row, block->rows, hidden));
      }
      const auto compute = [&] {
        const Decoder::LayerRows part = {.kv = &*pages,
                                         .rows = block->rows,
                                         .first_row = block->row,
                                         .first_angle = block->row};
        return decoder.Layer(stream, block->layer, {&part, 1}, hidden);
      };
      RETURN_IF_ERROR(pass.weights.With(block->layer, cancelled, compute));
      if (pass.seen_by != nullptr) {
        RETURN_IF_ERROR(pass.seen_by->KeepQueries(
            stream, block->layer, block->row, block->rows, decoder.queries()));
      }
      pass.hidden.End(*block);
      point->row = block->end();
    }
    if (!agreed) {  // no block was left, so no rank has reported yet
      RETURN_IF_ERROR(agree(pages.status()));
    }
    if (pass.seen_by != nullptr) {
      RETURN_IF_ERROR(pass.seen_by->AfterLayer(stream, point->layer, *pages));
    }
    pass.kv.EndLayer(point->layer);
    pass.after_layer(point->layer);
    if (point->layer + 1 == pass.layers) break;
    *point = {point->layer + 1, 0};
  }
  return agree(!asks || progress(total, total) ? absl::OkStatus()
                                               : CancelledError());
}

int64_t PromptRowsAtOnce(const ModelConfig& config,
                         int64_t weight_bytes_per_token, DeviceKind device,
                         int threads, int64_t before) {
  // So many rows of a matrix with 4,096 rows of its own are 256 tiles of
  // outputs, two for each multiprocessor of a large GPU. More would take memory
  // for activations, and no less time.
  constexpr int64_t kOnGpu = 1024;
  if (BodiesOf(device) == Bodies::kGpu) return kOnGpu;
  // Multiply-adds that we expect of a thread in 100 ms, at least: per row with
  // weights, where each weight byte counts as one; per row with K and V.
  constexpr int64_t kWithWeights = int64_t{1} << 30;
  constexpr int64_t kWithKv = int64_t{3} << 30;
  // Fewer rows would make the whole prompt slower: weights are unpacked, and K
  // and V converted to floats, once per block of rows.
  constexpr int64_t kLeastForWeights = 128;
  constexpr int64_t kLeastForKv = 64;
  constexpr int64_t kMost = 512;
  // An expert sees only its share of the rows.
  const ExpertsConfig& experts = config.experts;
  const int64_t least =
      experts.count == 0
          ? kLeastForWeights
          : std::min(kMost, kLeastForWeights * experts.count / experts.used);
  const int64_t weights =
      std::max<int64_t>(weight_bytes_per_token / config.layers, 1);
  const int64_t kv = std::max<int64_t>(
      2 * int64_t{config.heads} * config.head_dim * before, 1);
  return std::min({kMost, std::max(threads * kWithWeights / weights, least),
                   std::max(threads * kWithKv / kv, kLeastForKv)});
}

}  // namespace tiercel
