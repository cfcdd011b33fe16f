#include "runtime/pass/pass.h"

#include <algorithm>

#include "kernels/base/error.h"

namespace tiercel {

namespace {

// Which rows a layer has, and how far that brings the pass.
class PassRows {
 public:
  explicit PassRows(const Pass& pass)
      : all_({{.begin = 0, .end = pass.rows}}),
        deep_(pass.deep),
        shallow_(std::min(pass.shallow_layers, pass.layers)),
        layers_(pass.layers) {}

  const std::vector<PositionRange>& In(int layer) const {
    return layer < shallow_ ? all_ : deep_;
  }
  uint64_t Total() const { return Done(layers_, 0); }
  uint64_t Done(const PassPoint& point) const {
    return Done(point.layer, Before(In(point.layer), point.row));
  }

 private:
  // `rows` rows have passed through `layer`, and all of theirs before it.
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

  const std::vector<PositionRange> all_;
  const std::vector<PositionRange>& deep_;
  const int shallow_;
  const int layers_;
};

}  // namespace

absl::Status RunPass(const Pass& pass, Decoder& decoder, Stream& stream,
                     PassProgress progress, LayeredKv::Cancelled cancelled,
                     PassPoint* point) {
  const ModelConfig& config = decoder.config();
  const PassRows rows_of(pass);
  const uint64_t total = rows_of.Total();
  const bool asks = pass.rank == nullptr || pass.rank->rank == 0;
  const int threads =
      pass.rank != nullptr ? pass.rank->threads : stream.pool().num_threads();
  const auto agree = [&pass](const absl::Status& mine) {
    return pass.rank != nullptr ? pass.rank->group.Meet(pass.rank->rank, mine)
                                : mine;
  };
  for (;;) {
    const absl::StatusOr<KvPages> pages =
        pass.kv.BeginLayer(point->layer, cancelled);
    bool agreed = false;
    for (const PositionRange& range : rows_of.In(point->layer)) {
      point->row = std::max(point->row, range.begin);
      while (point->row < range.end) {
        absl::Status ready = pages.status();
        if (ready.ok() && asks &&
            (cancelled() || !progress(rows_of.Done(*point), total))) {
          ready = CancelledError();
        }
        if (absl::Status s = agree(ready); !s.ok()) return s;
        agreed = true;
        const int64_t rows =
            std::min(range.end - point->row,
                     PromptRowsAtOnce(config, pass.weight_bytes_per_token,
                                      threads, pass.before + point->row));
        if (absl::Status s =
                decoder.Layer(stream, point->layer, rows, point->row, *pages,
                              pass.hidden + point->row * config.hidden);
            !s.ok()) {
          return s;
        }
        if (pass.seen_by != nullptr) {
          if (absl::Status s = pass.seen_by->KeepQueries(
                  stream, point->layer, point->row, rows, decoder.queries());
              !s.ok()) {
            return s;
          }
        }
        point->row += rows;
      }
    }
    if (!agreed) {  // no row was left to pass
      if (absl::Status s = agree(pages.status()); !s.ok()) return s;
    }
    if (pass.seen_by != nullptr) {
      if (absl::Status s =
              pass.seen_by->AfterLayer(stream, point->layer, *pages);
          !s.ok()) {
        return s;
      }
    }
    pass.kv.EndLayer(point->layer);
    if (point->layer + 1 == pass.layers) break;
    *point = {point->layer + 1, 0};
  }
  return agree(!asks || progress(total, total) ? absl::OkStatus()
                                               : CancelledError());
}

int64_t PromptRowsAtOnce(const ModelConfig& config,
                         int64_t weight_bytes_per_token, int threads,
                         int64_t before) {
  // Multiply-adds of a thread in 100 ms, at the least we expect: of a row with
  // weights, one for a byte; of a row with K and V.
  constexpr int64_t kWithWeights = int64_t{1} << 30;
  constexpr int64_t kWithKv = int64_t{3} << 30;
  // Fewer would make the whole prompt slower: weights are unpacked, K and V
  // become floats once for all rows.
  constexpr int64_t kLeastForWeights = 128;
  constexpr int64_t kLeastForKv = 64;
  constexpr int64_t kMost = 512;
  const int64_t weights =
      std::max<int64_t>(weight_bytes_per_token / config.layers, 1);
  const int64_t kv = std::max<int64_t>(
      2 * int64_t{config.heads} * config.head_dim * before, 1);
  return std::min({kMost,
                   std::max(threads * kWithWeights / weights, kLeastForWeights),
                   std::max(threads * kWithKv / kv, kLeastForKv)});
}

}  // namespace tiercel
