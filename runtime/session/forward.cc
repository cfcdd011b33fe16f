// Session's steps: rows of tokens, prompts and sweeps, through a pass.

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/session/session.h"

namespace tiercel {

absl::Status Session::Forward(int64_t rows, Phase phase, Progress progress,
                              const View& view) {
  rows = std::min(rows, sequence_.pending());
  if (rows <= 0) return absl::OkStatus();
  const bool keeps =
      prompt_cache_ != nullptr && prompt_cache_->KeepsLayers(rows, phase, view);
  // Runs however this ends, after an exception too.
  absl::Cleanup abandon = [&] { AbandonStep(); };
  Runner::Stop stop;
  absl::Status status =
      Pass(rows, phase, progress, view, /*certain=*/true, keeps, &stop);
  if (status.ok()) status = Commit(rows, view);
  if (status.ok()) {
    std::move(abandon).Cancel();
  } else if (ClassOf(status) == ErrorClass::kCancelled &&
             stop.point.has_value() && InterruptedPrefill::MayKeep(rows) &&
             runner_->Suspend(*kv_, rows, *stop.point).ok()) {
    kv_->interrupted().Keep({sequence_.tokens(), rows, view, *stop.point});
  }
  return status;
}

absl::Status Session::CatchUp(Phase phase, Progress progress) {
  if (sequence_.tokens().empty()) {
    return UsageError("empty_prompt",
                      "the session holds no token to continue from");
  }
  if (sequence_.pending() == 0) {
    // The logits are read in the workspace.
    if (!NextLogits().empty()) return runner_->ReadyKeptRow();
    // The KV is complete, the logits are not known: the last row is computed
    // once more. Its bits do not depend on the rows that run with it.
    TruncateKv(sequence_.kv_length() - 1);
  }
  ASSIGN_OR_RETURN(std::optional<SequenceExtent> extent,
                   sequence_.NextExtent());
  View view = prompt_view_;
  if (extent.has_value()) {
    const SequenceExtent& next = *extent;
    const int64_t answer = next.answer_begin() - sequence_.first_position();
    // Rows of a new answer's tail that exist may do so in some layers alone:
    // they are computed again.
    if (sequence_.prompt_begins() && sequence_.kv_length() > answer) {
      TruncateKv(answer);
    }
    if (kv_->first().retrieval == nullptr) {
      view = next.Reads();
    } else {
      for (const auto& rank : kv_->ranks()) {
        rank->retrieval->ShowAbove({.layers = next.by_layer().full_layers,
                                    .sinks = next.by_layer().sinks,
                                    .answer_begin = next.answer_begin()});
      }
    }
  }
  int64_t last = 0;  // rows of the last step
  const bool ends_below = extent.has_value() && !view.IsFull();
  RETURN_IF_ERROR(ForwardAll(phase, progress, view,
                             ends_below ? &*extent : nullptr, &last));
  sequence_.EndPrompt(std::move(extent));
  return runner_->KeepRow(last - 1);
}

// Passes all rows that the KV lacks: those of a prompt in slices, where others
// would wait for it. `extent`: the layers that they go through; null: all.
absl::Status Session::ForwardAll(Phase phase, Progress progress,
                                 const View& view, const SequenceExtent* extent,
                                 int64_t* last) {
  const int64_t begin = sequence_.kv_length();
  const int64_t all = sequence_.pending();
  // The token-layers of rows, counted from `begin`.
  const auto upto = [&](int64_t rows) {
    const int layers = model().config.layers;
    if (extent == nullptr) return static_cast<uint64_t>(rows * layers);
    const int64_t first = sequence_.first_position() + begin;
    return static_cast<uint64_t>(extent->Entries(layers, first + rows) -
                                 extent->Entries(layers, first));
  };
  while (sequence_.pending() > 0) {
    const int64_t left = sequence_.pending();
    const int64_t slice = phase == Phase::kPrefill ? runner_->PromptSlice() : 0;
    *last = slice == 0 ? left : std::min(left, slice);
    if (*last == all) return Forward(all, phase, progress, view);
    const uint64_t done = upto(all - left);
    const uint64_t own = upto(all - left + *last) - done;
    const auto in_all = [&](uint64_t some, uint64_t of_slice) {
      return progress(done + own * some / of_slice, upto(all));
    };
    RETURN_IF_ERROR(Forward(*last, phase, in_all, view));
  }
  return absl::OkStatus();
}

absl::Status Session::Sweep(Phase phase,
                            absl::Span<const std::vector<int32_t>> others,
                            std::vector<int64_t>* first_rows) {
  absl::Cleanup abandon = [&] { AbandonStep(); };
  sweeps_ = true;
  const absl::Cleanup ended = [&] { sweeps_ = false; };
  if (others.empty()) {
    if (first_rows != nullptr) first_rows->assign(others.size(), -1);
    Runner::Stop stop;
    RETURN_IF_ERROR(Pass(sequence_.pending(), phase, kNoProgress, View::Full(),
                         /*certain=*/false, /*keeps=*/false, &stop));
  } else {
    kv_->DropInterrupted();
    RETURN_IF_ERROR(WithPagesBeingSaved(
        [&] { return SweepBeside(phase, others, first_rows); }));
  }
  std::move(abandon).Cancel();
  return absl::OkStatus();
}

absl::Status Session::SweepBeside(Phase phase,
                                  absl::Span<const std::vector<int32_t>> others,
                                  std::vector<int64_t>* first_rows) {
  first_rows->assign(others.size(), -1);
  const View all = View::Full();
  const SequenceRows own = PendingRows(sequence_.pending(), all);
  const StepKind kind = {.phase = phase};
  std::vector<JointStep> steps = {
      {.rows = own, .kind = kind, .certain = false}};
  std::vector<std::unique_ptr<SequenceKv>> copies;
  const int64_t most = runner_->MostRowsTogether();
  int64_t rows = own.count;
  for (const std::vector<int32_t>& other : others) {
    rows += std::ssize(other);
    if (rows > most || std::ssize(other) > kMaxStepRows) break;
    ASSIGN_OR_RETURN(std::unique_ptr<SequenceKv> copy,
                     kv_->Fork(SequenceKv::Copies::kPages));
    steps.push_back({.rows = {*copy, other.data(), std::ssize(other), all},
                     .kind = kind,
                     .certain = false,
                     .beside = std::ssize(steps)});
    copies.push_back(std::move(copy));
  }
  RETURN_IF_ERROR(runner_->PassTogether(
      absl::MakeSpan(steps), [this] { return cancellation_.cancelled(); }));
  for (size_t i = 0; i < copies.size(); ++i) {
    const JointStep& step = steps[i + 1];
    if (!step.status.ok()) continue;
    (*first_rows)[i] = step.last_row + 1 - step.rows.count;
    for (const auto& rank : copies[i]->ranks()) rank->store->Abandon();
  }
  return steps.front().status;
}

absl::Status Session::Keep(size_t length) {
  runner_->DropKeptRow();
  absl::Cleanup abandon = [&] { AbandonStep(); };
  RETURN_IF_ERROR(Commit(static_cast<int64_t>(length) - sequence_.kv_length(),
                         View::Full()));
  std::move(abandon).Cancel();
  sequence_.Truncate(length);
  return absl::OkStatus();
}

absl::Status Session::Fill(int64_t rows, uint64_t seed, Progress progress) {
  if (sequence_.extent().has_value()) {
    return UsageError(
        "invalid_argument",
        "sessions whose prompts end below the last layer are not filled, in "
        "this version");
  }
  kv_->DropInterrupted();
  runner_->DropKeptRow();
  const absl::Cleanup note = [&] {
    sequence_.FillKv(kv_->Align() - sequence_.kv_length());
  };
  return runner_->Fill(*kv_, rows, seed, progress,
                       [this] { return cancellation_.cancelled(); });
}

absl::Status Session::Commit(int64_t rows, const View& view) {
  RETURN_IF_ERROR(
      kv_->Commit(rows, [this] { return cancellation_.cancelled(); }));
  // Rows of prompts and answers are the same as far as they exist.
  sequence_.AddKv(rows, view == prompt_view_ || kv_->site().extent.has_value());
  return absl::OkStatus();
}

void Session::AbandonStep() {
  if (kv_->interrupted().exists()) return;
  kv_->Abandon(sequence_.kv_length());
  ForgetDamaged();
}

// Runs `step`. If it runs out of memory while pages are held to be saved, gives
// these up unsaved and runs it again.
absl::Status Session::WithPagesBeingSaved(
    absl::FunctionRef<absl::Status()> step) {
  const absl::Status status = step();
  if (ClassOf(status) != ErrorClass::kMemory || prompt_cache_ == nullptr ||
      !prompt_cache_->GiveBack()) {
    return status;
  }
  return step();
}

absl::Status Session::Pass(int64_t rows, Phase phase, Progress progress,
                           const View& view, bool certain, bool keeps,
                           Runner::Stop* stop) {
  return WithPagesBeingSaved([&] {
    return TryPass(rows, phase, progress, view, certain, keeps, stop);
  });
}

absl::Status Session::TryPass(int64_t rows, Phase phase, Progress progress,
                              const View& view, bool certain, bool keeps,
                              Runner::Stop* stop) {
  InterruptedPrefill& interrupted = kv_->interrupted();
  const std::optional<PassPoint> resume_at =
      interrupted.PointOf(sequence_.tokens(), rows, view);
  std::optional<InterruptedPrefill::Stopped> last = interrupted.Take();
  // After `progress` has refused to go on it is not called again. Between
  // layers it is told the last block's numbers: work for the disk does not
  // count.
  bool refused = false;
  std::pair<uint64_t, uint64_t> told = {
      0, static_cast<uint64_t>(rows * model().config.layers)};
  const auto ask = [&](uint64_t done, uint64_t total) {
    told = {done, total};
    refused = refused || !progress(done, total);
    return !refused;
  };
  const auto goes_on = [&] { return ask(told.first, told.second); };
  const auto note_resumed = [&](const PassPoint& point) {
    if (phase == Phase::kPrefill) sequence_.NoteResumed(point.layer);
  };
  const auto begun = [&](PassPoint* point) -> absl::Status {
    if (keeps) {
      RETURN_IF_ERROR(prompt_cache_->TakeLayers(rows, goes_on, point));
    }
    note_resumed(*point);
    return absl::OkStatus();
  };
  const auto after_layer = [&](int layer) {
    if (keeps) prompt_cache_->KeepLayer(layer, rows, goes_on);
  };
  if (resume_at.has_value()) note_resumed(*resume_at);
  const SequenceRows own = PendingRows(rows, view);
  *stop = {};
  const absl::Status status = runner_->Pass(
      own,
      {.phase = phase,
       .certain = certain,
       .resume_at = resume_at,
       .begun = begun,
       .after_layer = after_layer},
      ask, [this] { return cancellation_.cancelled(); }, stop);
  if (stop->unchanged) interrupted.Keep(*std::move(last));
  return status;
}

}  // namespace tiercel
