#include "offload/kv/kv_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::Status KvStore::BeginStep(int64_t rows, Phase phase, const View& view,
                                Cancelled cancelled, bool certain,
                                Agree agree) {
  seen_by_ = nullptr;
  step_rows_ = rows;
  const absl::Status room = BeginOwnStep(rows, phase, view, cancelled);
  absl::Status status = agree(room);
  // A step that finds no room is not shown: the observer stays as it is.
  if (status.ok()) {
    seen_by_ = view.IsFull() ? observer_ : nullptr;
    status = ShowStep(rows, certain, cancelled);
  }
  if (room.ok() && !status.ok()) AbandonOwn();
  return status;
}

absl::Status KvStore::Commit(int64_t rows, Cancelled cancelled) {
  RETURN_IF_ERROR(CommitOwn(rows, cancelled));
  if (seen_by_ != nullptr) seen_by_->Commit(end_);
  seen_by_ = nullptr;
  return absl::OkStatus();
}

void KvStore::Abandon() {
  AbandonOwn();
  HideStep();
}

absl::Status KvStore::Suspend(int layer, int64_t rows,
                              DevicePtr<std::byte> state, int64_t bytes) {
  const absl::Status status = SuspendOwn(layer, rows, state, bytes);
  if (!status.ok()) return status;
  suspended_was_seen_ = seen_by_ != nullptr;
  HideStep();
  return status;
}

// The observer has lost what it kept of the layers before the stop, so the step
// is shown to it as uncertain: it must not choose by the rest.
absl::Status KvStore::Resume(DevicePtr<std::byte> state, Cancelled cancelled) {
  seen_by_ = suspended_was_seen_ ? observer_ : nullptr;
  RETURN_IF_ERROR(ShowStep(step_rows_, /*certain=*/false, cancelled));
  const absl::Status status = ResumeOwn(state, cancelled);
  if (!status.ok()) HideStep();
  return status;
}

// The observer is shown the step anew, as after Resume.
absl::StatusOr<int> KvStore::TakeLayers(GiveLayers give,
                                        DevicePtr<std::byte> state,
                                        int64_t bytes, Cancelled cancelled) {
  const absl::StatusOr<int> taken =
      TakeOwnLayers(give, state, bytes, cancelled);
  if (!taken.ok() || *taken == 0) return taken;
  StepObserver* const seen_by = seen_by_;
  HideStep();
  seen_by_ = seen_by;
  RETURN_IF_ERROR(ShowStep(step_rows_, /*certain=*/false, cancelled));
  return taken;
}

absl::Status KvStore::Load(int64_t rows, GivePages give, Cancelled cancelled,
                           const std::shared_ptr<PageFile>& text) {
  if (end_ % kPageTokens != 0 || rows < 1) {
    return InternalError("internal",
                         absl::StrCat("pages are put behind position ", end_,
                                      ", for ", rows, " rows"));
  }
  Abandon();
  return LoadOwn(rows, give, text, cancelled);
}

absl::Status KvStore::NotInHostMemory() {
  return UsageError("invalid_argument",
                    "KV that is on the device alone is not loaded or held, in "
                    "this version");
}

void KvStore::Truncate(int64_t length) {
  TruncateOwn(length);
  if (observer_ != nullptr) observer_->Truncate(end_);
}

KvStore::StepRows KvStore::Step() const {
  StepRows step = {
      .deep = reads_.Deep(end_, end_ + step_rows_),
      .shallow_layers = reads_.shallow() ? reads_.full_layers() : layers_,
      .seen_by = seen_by_};
  for (PositionRange& range : step.deep) {
    range = {range.begin - end_, range.end - end_};
  }
  return step;
}

int KvStore::LayersOf(int64_t page) const {
  const int64_t first = (FirstPage() + page) * kPageTokens;
  const int64_t end = std::min(first + kPageTokens, end_ + step_rows_);
  return reads_.AnyDeep(std::max(first, begin_), end) ? layers_
                                                      : reads_.full_layers();
}

absl::Status KvStore::ShowStep(int64_t rows, bool certain,
                               Cancelled cancelled) {
  if (seen_by_ == nullptr) return absl::OkStatus();
  const absl::Status status =
      seen_by_->BeginStep(end_, rows, certain, cancelled);
  if (!status.ok()) seen_by_ = nullptr;
  return status;
}

void KvStore::HideStep() {
  if (seen_by_ != nullptr) seen_by_->Abandon();
  seen_by_ = nullptr;
}

}  // namespace tiercel
