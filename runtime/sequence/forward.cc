// Session's steps: rows of tokens, prompts, sweeps and drafts, through a pass.

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "kernels/base/error.h"
#include "runtime/pass/fill.h"
#include "runtime/sequence/session.h"

namespace tiercel {

absl::Status Session::Forward(int64_t rows, Station station, Progress progress,
                              const View& view) {
  rows = std::min(rows, pending());
  if (rows <= 0) return absl::OkStatus();
  PassPoint point;
  const int64_t before = kv_->length();
  // However this ends, by an exception too.
  absl::Cleanup abandon = [this] { AbandonStep(); };
  if (absl::Status s =
          BeginForward(rows, station, view, /*certain=*/true, &point);
      !s.ok()) {
    return s;
  }
  absl::Status status = RunLayers(rows, progress, &point);
  if (status.ok()) {
    status = kv_->Commit(rows, [this] { return cancelled(); });
  }
  if (status.ok()) {
    std::move(abandon).Cancel();
    NoteAdded(before, view);
  } else if (ClassOf(status) == ErrorClass::kCancelled && rows > kMaxStepRows) {
    const int64_t bytes =
        rows * model_.config.hidden * static_cast<int64_t>(sizeof(float));
    if (kv_->Suspend(point.layer, point.row,
                     reinterpret_cast<std::byte*>(hidden_.data()), bytes)
            .ok()) {
      interrupted_ = {tokens_, rows, view, point};
    }
  }
  return status;
}

absl::Status Session::Fill(int64_t rows, uint64_t seed, Progress progress) {
  if (spans_.has_value() || !stream_->on_host()) {
    return UsageError("invalid_argument",
                      "sessions of the policy speed, and those on device cuda, "
                      "are not filled, in this version");
  }
  interrupted_.reset();
  knows_next_ = false;
  // To what follows it is a prompt's.
  const bool settled = settled_ == kv_->length();
  filled_from_ = std::min(filled_from_, kv_->length());
  const absl::Cleanup note = [&] {
    if (settled) settled_ = kv_->length();
  };
  return FillKv(*kv_, rows, seed, *stream_, progress,
                [this] { return cancelled(); });
}

absl::Status Session::Sweep(Station station) {
  const int64_t rows = pending();
  PassPoint point;
  absl::Cleanup abandon = [this] { AbandonStep(); };
  if (absl::Status s = BeginForward(rows, station, View::Full(),
                                    /*certain=*/false, &point);
      !s.ok()) {
    return s;
  }
  const absl::Status status = RunLayers(rows, kNoProgress, &point);
  if (status.ok()) std::move(abandon).Cancel();
  return status;
}

absl::Status Session::Keep(size_t length) {
  knows_next_ = false;
  absl::Cleanup abandon = [this] { AbandonStep(); };
  const int64_t before = kv_->length();
  const absl::Status status = kv_->Commit(static_cast<int64_t>(length) - before,
                                          [this] { return cancelled(); });
  if (!status.ok()) return status;
  std::move(abandon).Cancel();
  NoteAdded(before, View::Full());
  tokens_.resize(length);
  return absl::OkStatus();
}

void Session::NoteAdded(int64_t before, const View& view) {
  // Below the cut rows are the same in prompts and answers.
  const bool same = view == prompt_view_ || site_.depth.has_value();
  if (settled_ == before && same) settled_ = kv_->length();
}

void Session::AbandonStep() {
  if (interrupted_.has_value()) return;
  kv_->Abandon();
}

// Makes room for a step, or takes up the one that was stopped.
absl::Status Session::BeginForward(int64_t rows, Station station,
                                   const View& view, bool certain,
                                   PassPoint* point) {
  // Whatever happens now, a callback that throws too, is not resumed twice.
  const std::optional<InterruptedPrompt> last =
      std::exchange(interrupted_, std::nullopt);
  const auto stop = [this] { return cancelled(); };
  absl::Status status;
  if (last.has_value() && last->IsFor(tokens_, rows, view)) {
    *point = last->point;
    status = kv_->Resume(reinterpret_cast<std::byte*>(hidden_.data()), stop);
    if (ClassOf(status) == ErrorClass::kCancelled) interrupted_ = last;
  } else {
    status = ReserveHidden(rows);
    if (!status.ok()) return status;
    status = kv_->BeginStep(rows, station, view, stop, certain);
    if (!status.ok()) return status;
    status = decoder_.Embed(*stream_, tokens_.data() + kv_->length(), rows,
                            hidden_.data());
  }
  if (status.ok()) {
    status = decoder_.BeginStep(*stream_, rows, kv_->end());
  }
  return status;
}

absl::Status Session::RunLayers(int64_t rows, Progress progress,
                                PassPoint* point) {
  return RunPass(
      {.kv = *kv_,
       .rows = rows,
       .before = kv_->length(),
       .layers = model_.config.layers,
       .deep = kv_->StepDeepRows(),
       .shallow_layers = kv_->StepShallowLayers(),
       .weight_bytes_per_token = model_.weights->bytes_per_token(),
       .hidden = hidden_.data(),
       .seen_by = kv_->StepSeenBy()},
      decoder_, *stream_, progress, [this] { return cancelled(); }, point);
}

namespace {

// What drafts read of a view, once it has arrived.
class ArrivedKv final : public LayeredKv {
 public:
  ArrivedKv(Retrieval& view, Stream& stream) : view_(view), stream_(stream) {}

  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override {
    if (absl::Status s = view_.Await(stream_, layer, cancelled); !s.ok()) {
      return s;
    }
    return view_.kv().BeginLayer(layer, cancelled);
  }
  void EndLayer(int layer) override { view_.kv().EndLayer(layer); }

 private:
  Retrieval& view_;
  Stream& stream_;
};

}  // namespace

absl::Status Session::DraftForward(const int32_t* ids, int64_t rows,
                                   int layers) {
  interrupted_.reset();  // its hidden states go
  if (absl::Status s = ReserveHidden(rows); !s.ok()) return s;
  if (absl::Status s = decoder_.Embed(*stream_, ids, rows, hidden_.data());
      !s.ok()) {
    return s;
  }
  CompactKv& kv = retrieval_->kv();
  if (absl::Status s = decoder_.BeginStep(*stream_, rows, kv.end()); !s.ok()) {
    return s;
  }
  ArrivedKv arrived(*retrieval_, *stream_);
  PassPoint point;
  if (absl::Status s = RunPass(
          {.kv = arrived,
           .rows = rows,
           .before = kv.end() - kv_->begin(),
           .layers = layers,
           .weight_bytes_per_token = model_.weights->bytes_per_token(),
           .hidden = hidden_.data()},
          decoder_, *stream_, kNoProgress, [this] { return cancelled(); },
          &point);
      !s.ok()) {
    return s;
  }
  kv.Extend(rows);
  return absl::OkStatus();
}

namespace {

// What a step over a view reads and writes: the view, and of the store the
// cells of the one row that it adds.
class KeptKv final : public LayeredKv {
 public:
  KeptKv(ArrivedKv& view, KvStore& store, Stream& stream)
      : view_(view), store_(store), stream_(stream) {}

  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override {
    const absl::StatusOr<KvPages> kept = store_.BeginLayer(layer, cancelled);
    if (!kept.ok()) return kept;
    kept_ = *kept;
    const absl::StatusOr<KvPages> seen = view_.BeginLayer(layer, cancelled);
    if (seen.ok()) seen_ = *seen;
    return seen;
  }
  void EndLayer(int layer) override {
    const std::byte* const from =
        seen_.pages[seen_.end / kPageTokens - seen_.first_page];
    std::byte* const to =
        kept_.pages[kept_.end / kPageTokens - kept_.first_page];
    const auto seen = static_cast<int>(seen_.end % kPageTokens);
    const auto kept = static_cast<int>(kept_.end % kPageTokens);
    const KvLayout& layout = kept_.layout;
    for (int head = 0; head < layout.kv_heads; ++head) {
      status_.Update(stream_.Copy(to + layout.KOffset(head, kept),
                                  from + layout.KOffset(head, seen),
                                  static_cast<size_t>(layout.KRowBytes())));
      status_.Update(stream_.Copy(to + layout.VOffset(head, kept),
                                  from + layout.VOffset(head, seen),
                                  static_cast<size_t>(layout.VRowBytes())));
    }
    view_.EndLayer(layer);
    store_.EndLayer(layer);
  }
  const absl::Status& status() const { return status_; }

 private:
  ArrivedKv& view_;
  KvStore& store_;
  Stream& stream_;
  KvPages seen_ = {};
  KvPages kept_ = {};
  absl::Status status_;
};

}  // namespace

absl::Status Session::ViewStep(Station station) {
  interrupted_.reset();  // its hidden states go
  const int64_t before = kv_->length();
  const View row = View::Window(/*sinks=*/0, /*recent=*/1);
  const auto stop = [this] { return cancelled(); };
  CompactKv& view = retrieval_->kv();
  absl::Cleanup abandon = [this] { AbandonStep(); };
  if (absl::Status s = ReserveHidden(1); !s.ok()) return s;
  if (absl::Status s = kv_->BeginStep(1, station, row, stop); !s.ok()) return s;
  if (absl::Status s =
          decoder_.Embed(*stream_, tokens_.data() + before, 1, hidden_.data());
      !s.ok()) {
    return s;
  }
  if (absl::Status s = decoder_.BeginStep(*stream_, 1, view.end()); !s.ok()) {
    return s;
  }
  retrieval_->BeginViewStep(view.end());
  ArrivedKv arrived(*retrieval_, *stream_);
  KeptKv both(arrived, *kv_, *stream_);
  PassPoint point;
  absl::Status status =
      RunPass({.kv = both,
               .rows = 1,
               .before = before,
               .layers = model_.config.layers,
               .weight_bytes_per_token = model_.weights->bytes_per_token(),
               .hidden = hidden_.data(),
               .seen_by = retrieval_.get()},
              decoder_, *stream_, kNoProgress, stop, &point);
  status.Update(both.status());
  if (status.ok()) status = kv_->Commit(1, stop);
  if (!status.ok()) return status;
  std::move(abandon).Cancel();
  view.Extend(1);
  NoteAdded(before, row);
  if (absl::Status s = LogitsInto(0, 1, /*row=*/0); !s.ok()) return s;
  knows_next_ = true;
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
  absl::StatusOr<DeviceArray<float>> larger = DeviceArray<float>::Create(
      model_.machine->memory(), size, "hidden states");
  if (!larger.ok()) return larger.status();
  hidden_ = *std::move(larger);
  return absl::OkStatus();
}

}  // namespace tiercel
