#include "runtime/session/draft_view.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "lib/status/status_macros.h"
#include "runtime/session/session.h"

namespace tiercel {

Retrieval& DraftView::first() const { return *session_.kv().first().retrieval; }

bool DraftView::HasRoom(int64_t rows) const {
  const auto& ranks = session_.kv().ranks();
  return std::all_of(ranks.begin(), ranks.end(), [rows](const auto& rank) {
    return rank->retrieval->HasRoom(rows);
  });
}

void DraftView::KeepPlaces() {
  for (const auto& rank : session_.kv().ranks()) rank->retrieval->KeepPlaces();
}

void DraftView::Truncate(int64_t end) {
  for (const auto& rank : session_.kv().ranks()) {
    rank->retrieval->kv().Truncate(end);
  }
}

void DraftView::Extend(int64_t rows) {
  for (const auto& rank : session_.kv().ranks()) {
    rank->retrieval->kv().Extend(rows);
  }
}

void DraftView::SetWindow(int64_t positions) {
  for (const auto& rank : session_.kv().ranks()) {
    rank->retrieval->kv().SetWindow(positions);
  }
}

// Returns the mean over layers and query heads.
std::optional<double> DraftView::coverage() const {
  if (session_.kv().IsAlone()) return first().coverage();
  double sum = 0;
  int64_t heads = 0;
  for (const auto& rank : session_.kv().ranks()) {
    if (!rank->IsFirstOfHeads()) continue;
    const std::optional<double> coverage = rank->retrieval->coverage();
    if (!coverage.has_value()) return std::nullopt;
    sum += *coverage * rank->site.QueryHeads();
    heads += rank->site.QueryHeads();
  }
  return sum / static_cast<double>(heads);
}

absl::Status DraftView::CatchUp(Phase phase) {
  RETURN_IF_ERROR(session_.CatchUp(phase));
  const auto& ranks = session_.kv().ranks();
  const auto fresh = [](const auto& rank) { return rank->retrieval->fresh(); };
  if (std::all_of(ranks.begin(), ranks.end(), fresh)) return absl::OkStatus();
  // CatchUp had fewer rows than choose a view, or went on with a prompt that
  // had been stopped, whose first half the view did not see.
  session_.TruncateKv(std::max<int64_t>(
      0, session_.sequence().kv_length() - first().evidence_rows()));
  session_.runner().DropKeptRow();
  return session_.CatchUp(phase);
}

absl::Status DraftView::Forward(const int32_t* ids, int64_t rows, int layers) {
  // The hidden states of a prompt that was stopped are overwritten.
  session_.kv().DropInterrupted();
  const View all = View::Full();
  const SequenceRows own = {session_.kv(), ids, rows, all};
  const absl::Status status = session_.runner().PassFew(
      own,
      {.phase = Phase::kDraft, .over = StepKind::Over::kView, .layers = layers},
      /*certain=*/false,
      [this] { return session_.cancellation().cancelled(); });
  if (!status.ok()) {
    session_.ForgetDamaged();
    return status;
  }
  Extend(rows);
  return status;
}

absl::Status DraftView::ForwardBranches(const std::vector<BranchRow>& rows) {
  // The hidden states of a prompt that was stopped are overwritten.
  session_.kv().DropInterrupted();
  const View all = View::Full();
  std::vector<JointStep> steps;
  for (const BranchRow& row : rows) {
    steps.push_back({.rows = {session_.kv(), &row.id, 1, all},
                     .kind = {.phase = Phase::kDraft,
                              .over = StepKind::Over::kView,
                              .branch = row.place},
                     .certain = false,
                     .beside = std::ssize(steps)});
  }
  absl::Status status = session_.runner().PassTogether(
      absl::MakeSpan(steps),
      [this] { return session_.cancellation().cancelled(); });
  for (const JointStep& step : steps) status.Update(step.status);
  if (!status.ok()) session_.ForgetDamaged();
  return status;
}

absl::Status DraftView::Step(Phase phase) {
  // The hidden states of a prompt that was stopped are overwritten.
  session_.kv().DropInterrupted();
  const View row = View::Window(/*sinks=*/0, /*recent=*/1);
  const SequenceRows own = session_.PendingRows(1, row);
  absl::Cleanup abandon = [&] { session_.AbandonStep(); };
  RETURN_IF_ERROR(session_.WithPagesBeingSaved([&] {
    return session_.runner().PassFew(
        own, {.phase = phase, .over = StepKind::Over::kBoth}, /*certain=*/true,
        [this] { return session_.cancellation().cancelled(); });
  }));
  RETURN_IF_ERROR(session_.Commit(1, row));
  std::move(abandon).Cancel();
  Extend(1);
  return session_.runner().KeepRow(0);
}

absl::Status DraftView::Refresh() {
  const absl::Status status = session_.runner().RefreshViews(
      session_.kv(), [this] { return session_.cancellation().cancelled(); });
  if (!status.ok()) session_.ForgetDamaged();
  return status;
}

}  // namespace tiercel
