#include "runtime/pass/fill.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/device_memory.h"
#include "kernels/kv/kv_write.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

constexpr int64_t kStep = 512;  // rows at a time

// Rows of normal floats, cut from one pool at random offsets: drawing each
// number would take longer than the pass that is to be measured.
class RandomRows {
 public:
  // Makes rows of `width` elements where the ops of `stream` can read them: for
  // a GPU in its memory, outside the budget. Errors: out_of_memory,
  // device_failed.
  static absl::StatusOr<RandomRows> Create(uint64_t seed, int64_t width,
                                           Stream& stream) {
    RandomRows rows(seed, kPlaces + kStep * width);
    if (stream.on_host()) return rows;
    ASSIGN_OR_RETURN(
        rows.on_device_,
        DeviceArray<float>::Create(stream.queue().memory(),
                                   std::ssize(rows.pool_), "random rows"));
    RETURN_IF_ERROR(stream.Copy(rows.on_device_.data(), rows.pool_.data(),
                                rows.pool_.size() * sizeof(float)));
    return rows;
  }

  // The next kStep rows, one after the other.
  DevicePtr<const float> Draw() {
    // Aligned for vector loads.
    const auto place = static_cast<int64_t>(random_() % kPlaces) / 8 * 8;
    return (on_device_.empty() ? InPlace(pool_.data()) : on_device_.data()) +
           place;
  }

 private:
  static constexpr int64_t kPlaces = int64_t{1} << 18;

  RandomRows(uint64_t seed, int64_t size) : random_(seed) {
    std::normal_distribution<float> normal;
    pool_.resize(static_cast<size_t>(size));
    for (float& x : pool_) x = normal(random_);
  }

  std::mt19937_64 random_;
  std::vector<float> pool_;
  DeviceArray<float> on_device_;  // empty: the ops read `pool_`
};

}  // namespace

absl::Status FillKv(KvStore& kv, int64_t rows, uint64_t seed, Stream& stream,
                    absl::FunctionRef<bool(uint64_t, uint64_t)> progress,
                    KvStore::Cancelled cancelled, const FillPart* part) {
  if (rows <= 0) return absl::OkStatus();  // before numbers are drawn
  // No row attends to another, and no observer sees the step: selectors that
  // come later read the keys from the KV.
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
  absl::StatusOr<RandomRows> random = RandomRows::Create(seed, width, stream);
  RETURN_IF_ERROR(agree(random.status()));
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
      ready = kv.BeginStep(step, Phase::kPrefill, alone, cancelled);
    }
    RETURN_IF_ERROR(agree(ready));
    for (int layer = 0; layer < kv.layers(); ++layer) {
      ASSIGN_OR_RETURN(const KvPages pages, kv.BeginLayer(layer, cancelled));
      const DevicePtr<const float> keys = random->Draw();
      const DevicePtr<const float> values = random->Draw();
      RETURN_IF_ERROR(KvWrite(stream, {.k = keys + own,
                                       .v = values + own,
                                       .k_stride = width,
                                       .v_stride = width,
                                       .rows = step,
                                       .layout = pages.layout,
                                       .pages = pages.pages,
                                       .first_page = pages.first_page,
                                       .num_pages = pages.num_pages,
                                       .position = pages.end}));
      kv.EndLayer(layer);
    }
    RETURN_IF_ERROR(kv.Commit(step, cancelled));
    std::move(abandon).Cancel();
    done += step;
  }
  return absl::OkStatus();
}

}  // namespace tiercel
