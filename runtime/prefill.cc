#include <algorithm>

#include "kernels/base/error.h"
#include "runtime/session.h"

namespace tiercel {

// Layer-major: every row passes through layer l before any enters layer l + 1,
// so a layer's weights and KV are wanted once per prompt, not once per chunk of
// it. What must fit is one hidden state per row.
absl::Status Session::Forward(int64_t rows, Progress progress) {
  const ModelConfig& config = model_.config;
  rows = std::min(rows, pending());
  if (rows <= 0) return absl::OkStatus();
  const int64_t before = kv_.length();
  const int64_t rows_at_once = RowsAtOnce();
  const auto total = static_cast<uint64_t>(rows * config.layers);

  const auto run = [&]() -> absl::Status {
    if (absl::Status s = kv_.Reserve(rows); !s.ok()) return s;
    hidden_.resize(static_cast<size_t>(rows * config.hidden));
    if (absl::Status s = decoder_.BeginStep(*stream_, rows, kv_); !s.ok()) {
      return s;
    }
    if (absl::Status s = decoder_.Embed(*stream_, tokens_.data() + before, rows,
                                        hidden_.data());
        !s.ok()) {
      return s;
    }
    uint64_t done = 0;
    for (int layer = 0; layer < config.layers; ++layer) {
      for (int64_t row = 0; row < rows; row += rows_at_once) {
        if (cancelled() || !progress(done, total)) return CancelledError();
        const int64_t count = std::min(rows_at_once, rows - row);
        if (absl::Status s =
                decoder_.Layer(*stream_, layer, count, row, kv_,
                               hidden_.data() + row * config.hidden);
            !s.ok()) {
          return s;
        }
        done += static_cast<uint64_t>(count);
      }
    }
    return progress(done, total) ? absl::OkStatus() : CancelledError();
  };

  const absl::Status status = run();
  if (!status.ok()) {
    kv_.Truncate(before);
    return status;
  }
  kv_.Commit(rows);
  return absl::OkStatus();
}

// As many rows as fill the machine, as few as answer a cancellation within
// 100 ms: at 20 G multiply-adds a second, the least we expect of two cores.
int64_t Session::RowsAtOnce() const {
  const int64_t weights_per_layer =
      model_.weights->bytes_per_token() / model_.config.layers;
  constexpr int64_t kWeightBytesTimesRows = int64_t{2} << 30;
  return std::clamp<int64_t>(kWeightBytesTimesRows / weights_per_layer, 32,
                             512);
}

}  // namespace tiercel
