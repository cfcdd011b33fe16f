#include "runtime/pass/fill.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "kernels/base/error.h"
#include "kernels/kv/kv_write.h"

namespace tiercel {
namespace {

// Rows of normal floats. One is a piece of a large pool from a place of its
// own: drawing each would take longer than what is to be measured.
class RandomRows {
 public:
  RandomRows(uint64_t seed, int64_t width) : width_(width), random_(seed) {
    std::normal_distribution<float> normal;
    pool_.resize(static_cast<size_t>(kPool + width));
    for (float& x : pool_) x = normal(random_);
  }

  // [rows, width], until the next call.
  const float* Draw(int64_t rows) {
    rows_.resize(static_cast<size_t>(rows * width_));
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(pool_.data() + static_cast<int64_t>(random_() % kPool),
                  width_, rows_.data() + row * width_);
    }
    return rows_.data();
  }

 private:
  static constexpr int64_t kPool = int64_t{1} << 18;

  const int64_t width_;
  std::mt19937_64 random_;
  std::vector<float> pool_;
  std::vector<float> rows_;
};

}  // namespace

absl::Status FillKv(KvStore& kv, int64_t rows, uint64_t seed, Stream& stream,
                    absl::FunctionRef<bool(uint64_t, uint64_t)> progress,
                    KvStore::Cancelled cancelled, const FillPart* part) {
  if (rows <= 0) return absl::OkStatus();  // before numbers are drawn
  constexpr int64_t kStep = 512;
  // No row reads another, and nobody looks on: what follows finds the keys.
  const View alone = View::Window(/*sinks=*/0, /*recent=*/1);
  const int head_dim = kv.layout().head_dim;
  const int heads = part != nullptr ? part->kv_heads : kv.layout().kv_heads;
  const int64_t width = int64_t{heads} * head_dim;
  const int64_t own =
      part != nullptr ? int64_t{part->first_head} * head_dim : 0;
  const bool asks = part == nullptr || part->rank.rank == 0;
  const auto agree = [part](const absl::Status& mine) {
    return part != nullptr ? part->rank.group.Meet(part->rank.rank, mine)
                           : mine;
  };
  RandomRows keys(seed, width);
  RandomRows values(~seed, width);
  int64_t done = 0;
  while (done < rows) {
    const int64_t step = std::min(kStep, rows - done);
    absl::Cleanup abandon = [&kv] { kv.Abandon(); };
    absl::Status ready;
    if (asks && (cancelled() || !progress(static_cast<uint64_t>(done),
                                          static_cast<uint64_t>(rows)))) {
      ready = CancelledError();
    }
    if (ready.ok()) {
      ready = kv.BeginStep(step, Station::kPrefill, alone, cancelled);
    }
    if (absl::Status s = agree(ready); !s.ok()) return s;
    for (int layer = 0; layer < kv.layers(); ++layer) {
      const absl::StatusOr<KvPages> pages = kv.BeginLayer(layer, cancelled);
      if (!pages.ok()) return pages.status();
      if (absl::Status s = KvWrite(stream, {.k = keys.Draw(step) + own,
                                            .v = values.Draw(step) + own,
                                            .k_stride = width,
                                            .v_stride = width,
                                            .rows = step,
                                            .layout = pages->layout,
                                            .pages = pages->pages,
                                            .first_page = pages->first_page,
                                            .num_pages = pages->num_pages,
                                            .position = pages->end});
          !s.ok()) {
        return s;
      }
      kv.EndLayer(layer);
    }
    if (absl::Status s = kv.Commit(step, cancelled); !s.ok()) return s;
    std::move(abandon).Cancel();
    done += step;
  }
  return absl::OkStatus();
}

}  // namespace tiercel
