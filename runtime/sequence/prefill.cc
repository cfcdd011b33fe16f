#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "kernels/base/error.h"
#include "runtime/predict/session_plan.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// Layer-major: every row passes through layer l before any enters layer l + 1,
// so a layer's weights and KV are wanted once per prompt, not once per chunk of
// it. What must fit is one hidden state per row.
absl::Status Session::Forward(int64_t rows, Station station, Progress progress,
                              const View& view) {
  rows = std::min(rows, pending());
  if (rows <= 0) return absl::OkStatus();
  Place place;
  // However this ends, by an exception too.
  absl::Cleanup abandon = [this] { AbandonStep(); };
  if (absl::Status s =
          BeginForward(rows, station, view, /*certain=*/true, &place);
      !s.ok()) {
    return s;
  }
  absl::Status status = RunLayers(rows, progress, &place);
  if (status.ok()) {
    status = kv_->Commit(rows, [this] { return cancelled(); });
  }
  if (observed_ && status.ok()) retrieval_->Commit(kv_->end());
  const bool keep =
      ClassOf(status) == ErrorClass::kCancelled && rows > kMaxStepRows &&
      kv_->Suspend(
             place.layer, place.row,
             reinterpret_cast<std::byte*>(hidden_.data()),
             rows * model_.config.hidden * static_cast<int64_t>(sizeof(float)))
          .ok();
  if (keep) unfinished_ = Unfinished{tokens_, rows, view, place};
  if (status.ok()) std::move(abandon).Cancel();
  return status;
}

absl::Status Session::Sweep(Station station) {
  const int64_t rows = pending();
  Place place;
  absl::Cleanup abandon = [this] { AbandonStep(); };
  if (absl::Status s = BeginForward(rows, station, View::Full(),
                                    /*certain=*/false, &place);
      !s.ok()) {
    return s;
  }
  const absl::Status status = RunLayers(rows, kNoProgress, &place);
  if (status.ok()) std::move(abandon).Cancel();
  return status;
}

absl::Status Session::Keep(size_t length) {
  next_logits_.clear();
  absl::Cleanup abandon = [this] { AbandonStep(); };
  const absl::Status status =
      kv_->Commit(static_cast<int64_t>(length) - kv_->length(),
                  [this] { return cancelled(); });
  if (!status.ok()) return status;
  std::move(abandon).Cancel();
  if (observed_) retrieval_->Commit(kv_->end());
  tokens_.resize(length);
  return absl::OkStatus();
}

// What is unfinished is kept; what was seen of it is not.
void Session::AbandonStep() {
  if (!unfinished_.has_value()) kv_->Abandon();
  if (observed_) retrieval_->Abandon();
}

// Makes room for a step, or takes up the one that was stopped.
absl::Status Session::BeginForward(int64_t rows, Station station,
                                   const View& view, bool certain,
                                   Place* place) {
  // Whatever happens now, a callback that throws too, is not resumed twice.
  const std::optional<Unfinished> last =
      std::exchange(unfinished_, std::nullopt);
  const auto stop = [this] { return cancelled(); };
  absl::Status status;
  if (last.has_value() && last->rows == rows && last->tokens == tokens_ &&
      last->view == view) {
    *place = last->place;
    // The layers before have not been seen to choose.
    status = ObserveStep(rows, view, /*certain=*/false);
    if (!status.ok()) return status;
    status = kv_->Resume(reinterpret_cast<std::byte*>(hidden_.data()), stop);
    if (ClassOf(status) == ErrorClass::kCancelled) unfinished_ = last;
  } else {
    status = ReserveHidden(rows);
    if (!status.ok()) return status;
    status = ObserveStep(rows, view, certain);
    if (!status.ok()) return status;
    status = kv_->BeginStep(rows, station, view, stop);
    if (!status.ok()) return status;
    status = decoder_.Embed(*stream_, tokens_.data() + kv_->length(), rows,
                            hidden_.data());
  }
  if (status.ok()) {
    status = decoder_.BeginStep(*stream_, rows, kv_->end());
  }
  return status;
}

absl::Status Session::ObserveStep(int64_t rows, const View& view,
                                  bool certain) {
  observed_ = retrieval_ != nullptr && view.IsFull();
  if (!observed_) return absl::OkStatus();
  return retrieval_->BeginStep(kv_->end(), rows, certain,
                               [this] { return cancelled(); });
}

absl::Status Session::RunLayers(int64_t rows, Progress progress, Place* place) {
  const ModelConfig& config = model_.config;
  const auto total = static_cast<uint64_t>(rows * config.layers);
  const auto stop = [this] { return cancelled(); };
  for (;;) {
    const absl::StatusOr<KvPages> pages = kv_->BeginLayer(place->layer, stop);
    if (!pages.ok()) return pages.status();
    while (place->row < rows) {
      const int64_t done = place->layer * rows + place->row;
      if (cancelled() || !progress(static_cast<uint64_t>(done), total)) {
        return CancelledError();
      }
      const int64_t count =
          std::min(rows - place->row,
                   PromptRowsAtOnce(config, model_.weights->bytes_per_token(),
                                    stream_->pool().num_threads(),
                                    kv_->length() + place->row));
      if (absl::Status s =
              decoder_.Layer(*stream_, place->layer, count, place->row, *pages,
                             hidden_.data() + place->row * config.hidden);
          !s.ok()) {
        return s;
      }
      if (observed_) {
        retrieval_->KeepQueries(place->layer, place->row, count,
                                decoder_.queries());
      }
      place->row += count;
    }
    if (observed_) {
      if (absl::Status s =
              retrieval_->AfterLayer(*stream_, place->layer, *pages);
          !s.ok()) {
        return s;
      }
    }
    kv_->EndLayer(place->layer);
    if (place->layer + 1 == config.layers) break;
    *place = {place->layer + 1, 0};
  }
  return progress(total, total) ? absl::OkStatus() : CancelledError();
}

absl::Status Session::DraftForward(const int32_t* ids, int64_t rows,
                                   int layers) {
  unfinished_.reset();  // its hidden states go
  const auto stop = [this] { return cancelled(); };
  CompactKv& kv = retrieval_->kv();
  if (absl::Status s = ReserveHidden(rows); !s.ok()) return s;
  if (absl::Status s = decoder_.Embed(*stream_, ids, rows, hidden_.data());
      !s.ok()) {
    return s;
  }
  if (absl::Status s = decoder_.BeginStep(*stream_, rows, kv.end()); !s.ok()) {
    return s;
  }
  for (int layer = 0; layer < layers; ++layer) {
    if (cancelled()) return CancelledError();
    if (absl::Status s = retrieval_->Await(*stream_, layer, stop); !s.ok())
      return s;
    const absl::StatusOr<KvPages> pages = kv.BeginLayer(layer, stop);
    if (!pages.ok()) return pages.status();
    if (absl::Status s =
            decoder_.Layer(*stream_, layer, rows, 0, *pages, hidden_.data());
        !s.ok()) {
      return s;
    }
    kv.EndLayer(layer);
  }
  kv.Extend(rows);
  return absl::OkStatus();
}

absl::Status Session::RefreshView() {
  return retrieval_->Refresh(*stream_, [this] { return cancelled(); });
}

// The rows of the last step are nobody's once a new one begins.
absl::Status Session::ReserveHidden(int64_t rows) {
  const int64_t size = rows * model_.config.hidden;
  if (static_cast<int64_t>(hidden_.size()) >= size) return absl::OkStatus();
  hidden_ = DeviceArray<float>();
  absl::StatusOr<DeviceArray<float>> larger =
      DeviceArray<float>::Create(model_.memory(), size, "hidden states");
  if (!larger.ok()) return larger.status();
  hidden_ = *std::move(larger);
  return absl::OkStatus();
}

}  // namespace tiercel
