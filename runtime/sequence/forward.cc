// Session's steps: rows of tokens, prompts, sweeps and drafts, through a pass.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/sequence/session.h"

namespace tiercel {

absl::Status Session::Forward(int64_t rows, Phase phase, Progress progress,
                              const View& view) {
  rows = std::min(rows, sequence_.pending());
  if (rows <= 0) return absl::OkStatus();
  const bool keeps = KeepsPrompt(rows, phase, view);
  // Runs however this ends, after an exception too.
  absl::Cleanup abandon = [&] { AbandonStep(); };
  std::optional<PassPoint> point;
  absl::Status status =
      Pass(rows, phase, progress, view, /*certain=*/true, keeps, &point);
  if (status.ok()) status = Commit(rows);
  if (status.ok()) {
    std::move(abandon).Cancel();
    NoteAdded(rows, view);
  } else if (ClassOf(status) == ErrorClass::kCancelled && point.has_value() &&
             rows > kMaxStepRows) {
    const bool others = workspaces_.use_count() > 1;
    if (EachRank([&](SessionRank& rank) {
          return rank.Suspend(rows, *point, others);
        }).ok()) {
      interrupted_ = {sequence_.tokens(), rows, view, *point};
    }
  }
  return status;
}

absl::Status Session::Fill(int64_t rows, uint64_t seed, Progress progress) {
  if (sequence_.spans().has_value()) {
    return UsageError(
        "invalid_argument",
        "sessions of the policy speed are not filled, in this version");
  }
  DropInterrupted();
  knows_next_ = false;
  const absl::Cleanup note = [&] {
    // All ranks keep only the rows that every rank has.
    int64_t length = kv().length();
    for (const auto& rank : ranks_) {
      length = std::min(length, rank->kv->length());
    }
    for (const auto& rank : ranks_) {
      if (rank->kv->length() > length) rank->kv->Truncate(length);
    }
    sequence_.FillKv(length - sequence_.kv_length());
  };
  return EachRank([&](SessionRank& rank) {
    return rank.Fill(rows, seed, progress, [this] { return cancelled(); });
  });
}

absl::Status Session::Sweep(Phase phase) {
  absl::Cleanup abandon = [&] { AbandonStep(); };
  std::optional<PassPoint> point;
  const absl::Status status = Pass(sequence_.pending(), phase, kNoProgress,
                                   View::Full(), /*certain=*/false,
                                   /*keeps=*/false, &point);
  if (status.ok()) std::move(abandon).Cancel();
  return status;
}

absl::Status Session::Keep(size_t length) {
  knows_next_ = false;
  const int64_t rows = static_cast<int64_t>(length) - sequence_.kv_length();
  absl::Cleanup abandon = [&] { AbandonStep(); };
  RETURN_IF_ERROR(Commit(rows));
  std::move(abandon).Cancel();
  NoteAdded(rows, View::Full());
  sequence_.Truncate(length);
  return absl::OkStatus();
}

absl::Status Session::Commit(int64_t rows) {
  for (const auto& rank : ranks_) {
    RETURN_IF_ERROR(rank->kv->Commit(rows, [this] { return StopsAlone(); }));
  }
  return absl::OkStatus();
}

void Session::NoteAdded(int64_t rows, const View& view) {
  // With a depth, rows of prompts and answers are the same below the cut.
  sequence_.AddKv(rows, view == prompt_view_ || site().depth.has_value());
}

void Session::AbandonStep() {
  const int64_t length = sequence_.kv_length();
  if (interrupted_.has_value()) return;
  DropInterrupted();
  DropViews();
  for (const auto& rank : ranks_) {
    rank->kv->Abandon();
    // Another rank may have failed after this one had committed.
    if (rank->kv->length() > length) rank->kv->Truncate(length);
  }
  ForgetDamaged();
}

// Runs `step`. If it runs out of memory while pages are held to be saved, gives
// these up unsaved and runs it again.
absl::Status Session::WithPagesBeingSaved(
    absl::FunctionRef<absl::Status()> step) {
  const absl::Status status = step();
  if (ClassOf(status) != ErrorClass::kMemory || prompt_cache_ == nullptr ||
      !prompt_cache_->HoldsPages()) {
    return status;
  }
  prompt_cache_->GiveBack();
  return step();
}

absl::Status Session::Pass(int64_t rows, Phase phase, Progress progress,
                           const View& view, bool certain, bool keeps,
                           std::optional<PassPoint>* point) {
  return WithPagesBeingSaved([&] {
    return TryPass(rows, phase, progress, view, certain, keeps, point);
  });
}

absl::Status Session::TryPass(int64_t rows, Phase phase, Progress progress,
                              const View& view, bool certain, bool keeps,
                              std::optional<PassPoint>* point) {
  // Taken out first, so that nothing, not even a callback that throws, lets the
  // prompt be resumed twice.
  const std::optional<InterruptedPrompt> last =
      std::exchange(interrupted_, std::nullopt);
  const bool resumes =
      last.has_value() && last->IsFor(sequence_.tokens(), rows, view);
  const int32_t* const ids = sequence_.tokens().data() + sequence_.kv_length();
  const auto stop = [this] { return cancelled(); };
  // After `progress` has refused to go on it is not called again. Between
  // layers it is told the last block's numbers: work for the disk does not
  // count.
  bool refused = false;
  std::pair<uint64_t, uint64_t> told = {0, TokenLayers(rows)};
  const auto ask = [&](uint64_t done, uint64_t total) {
    told = {done, total};
    refused = refused || !progress(done, total);
    return !refused;
  };
  const auto goes_on = [&] { return ask(told.first, told.second); };
  std::vector<std::optional<PassPoint>> points(ranks_.size());
  bool stays = false;  // the stopped step stays as it was
  const absl::Status status = EachRank([&](SessionRank& rank) {
    PassPoint own = resumes ? last->point : PassPoint();
    const auto go_on = [&] {
      return keeps ? GoOnFromDisk(rows, goes_on, &own) : absl::OkStatus();
    };
    absl::Status begun =
        resumes ? rank.Resume(rows, [this] { return StopsAlone(); })
                : rank.BeginForward(rows, phase, view, certain, stop, go_on);
    if (!begun.ok()) {
      if (resumes && rank.alone()) {
        stays = ClassOf(begun) == ErrorClass::kCancelled;
      }
      return begun;
    }
    if (rank.site.rank == 0 && phase == Phase::kPrefill) {
      resumed_layers_ = own.layer;
    }
    const auto after = [&](int layer) {
      if (keeps) KeepLayer(layer, rows, goes_on);
    };
    // A prompt that was stopped between two layers may not have saved the
    // first.
    if (own.layer > 0 && own.row == 0) after(own.layer - 1);
    const absl::Cleanup came = [&] {
      points[static_cast<size_t>(rank.site.rank)] = own;
    };
    return rank.RunLayers(ids, rows, ask, stop, after, &own);
  });
  if (stays) interrupted_ = last;
  const bool alike =
      std::all_of(points.begin(), points.end(), [&](const auto& own) {
        return own.has_value() && own == points.front();
      });
  if (alike) *point = points.front();
  return status;
}

absl::Status Session::DraftForward(const int32_t* ids, int64_t rows,
                                   int layers) {
  DropInterrupted();  // its hidden states are overwritten
  if (absl::Status s = EachRank([&](SessionRank& rank) {
        return rank.DraftForward(ids, rows, layers,
                                 [this] { return cancelled(); });
      });
      !s.ok()) {
    ForgetDamaged();
    return s;
  }
  for (const auto& rank : ranks_) rank->retrieval->kv().Extend(rows);
  return absl::OkStatus();
}

absl::Status Session::ViewStep(Phase phase) {
  DropInterrupted();  // its hidden states are overwritten
  const int32_t id =
      sequence_.tokens()[static_cast<size_t>(sequence_.kv_length())];
  absl::Cleanup abandon = [&] { AbandonStep(); };
  absl::Status status = WithPagesBeingSaved([&] {
    return EachRank([&](SessionRank& rank) {
      return rank.ViewStep(id, phase, [this] { return cancelled(); });
    });
  });
  if (status.ok()) status = Commit(1);
  if (!status.ok()) return status;
  std::move(abandon).Cancel();
  for (const auto& rank : ranks_) rank->retrieval->kv().Extend(1);
  NoteAdded(1, View::Window(/*sinks=*/0, /*recent=*/1));
  RETURN_IF_ERROR(LogitsInto(0, 1, /*row=*/0));
  knows_next_ = true;
  return absl::OkStatus();
}

absl::Status Session::RefreshView() {
  const absl::Status status = EachRank([this](SessionRank& rank) {
    return rank.retrieval->Refresh(*rank.stream,
                                   [this] { return cancelled(); });
  });
  if (!status.ok()) ForgetDamaged();
  return status;
}

}  // namespace tiercel
