#include "runtime/session/batch.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<Batch>> Batch::Create(const Session& session) {
  ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner, session.runner().Fork());
  return std::unique_ptr<Batch>(new Batch(std::move(runner)));
}

absl::Status Batch::Run(std::vector<Call> calls) {
  const absl::Cleanup end = [this] { End(); };
  for (Call& call : calls) {
    Member& member = members_.emplace_back(Member{call.session});
    ASSIGN_OR_RETURN(member.strand, Strand::Create(std::move(call.run)));
  }
  for (Member& member : members_) member.session.runner().ShareSteps(this);
  for (Member& member : members_) Resume(member);
  while (!waiting_.empty()) {
    const std::vector<Member*> group = TakeGroup();
    PassGroup(group);
    // Members for which there was no room are the first of the next pass.
    for (auto each = group.rbegin(); each != group.rend(); ++each) {
      if ((*each)->wanted->waits) waiting_.push_front(*each);
    }
    for (Member* const member : group) {
      if (!member->wanted->waits) Resume(*member);
    }
  }
  return absl::OkStatus();
}

void Batch::Resume(Member& member) {
  running_ = &member;
  member.strand->Resume();
  while (!member.strand->ended() && member.work != nullptr) {
    (*member.work)();
    member.strand->Resume();
  }
  running_ = nullptr;
  if (member.strand->ended()) {
    member.session.runner().Rest();
  } else {
    waiting_.push_back(&member);
  }
}

std::vector<Batch::Member*> Batch::TakeGroup() {
  const auto draft = std::find_if(
      waiting_.begin(), waiting_.end(),
      [](const Member* member) { return !member->wanted->kind.IsSweep(); });
  const StepKind kind = draft != waiting_.end()
                            ? (*draft)->wanted->kind
                            : waiting_.front()->wanted->kind;
  const RunnerRank& rank = runner_->first();
  const int64_t most = std::min(rank.site.RowsTogether(), rank.plan.state_rows);
  std::vector<Member*> group;
  int64_t rows = 0;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const Wanted& wanted = *(*at)->wanted;
    const bool fits = group.empty() || rows + wanted.rows.count <= most;
    if (!fits || !(wanted.kind == kind)) {
      ++at;
      continue;
    }
    rows += wanted.rows.count;
    group.push_back(*at);
    at = waiting_.erase(at);
  }
  return group;
}

void Batch::PassGroup(absl::Span<Member* const> group) {
  std::vector<RankStep> steps;
  std::vector<Member*> whose;  // [step]
  for (Member* const member : group) {
    Wanted& wanted = *member->wanted;
    wanted.waits = false;
    if (wanted.cancelled()) {
      wanted.status = CancelledError();
      continue;
    }
    const SequenceRows& rows = wanted.rows;
    steps.push_back(
        {{rows.kv.first(), rows.ids, rows.count}, rows.view, wanted.certain});
    whose.push_back(member);
  }
  if (steps.empty()) return;
  const auto all_cancelled = [&] {
    return std::all_of(whose.begin(), whose.end(),
                       [](Member* m) { return m->wanted->cancelled(); });
  };
  const StepKind kind = whose.front()->wanted->kind;
  absl::Status status =
      runner_->PassTogether(absl::MakeSpan(steps), kind, all_cancelled);
  int64_t rows = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    whose[i]->wanted->status = steps[i].status;
    whose[i]->wanted->waits = steps[i].waits;
    whose[i]->first_row = steps[i].first_row;
    if (steps[i].first_row >= 0) rows += steps[i].rows.count;
  }
  if (status.ok()) status = KeepLogits(rows);
  runner_->Rest();
  ++passes_.passes;
  passes_.sweeps += kind.IsSweep() ? 1 : 0;
  passes_.rows += rows;
  passes_.most_rows = std::max(passes_.most_rows, rows);
  for (Member* const member : whose) {
    member->wanted->status.Update(status);
    passes_.steps += member->wanted->waits ? 0 : 1;
  }
}

absl::Status Batch::KeepLogits(int64_t rows) {
  logits_.clear();
  for (int64_t first = 0; first < rows; first += kMaxStepRows) {
    const int64_t count = std::min(rows - first, kMaxStepRows);
    ASSIGN_OR_RETURN(const float* logits, runner_->RowLogits(first, count));
    logits_.insert(logits_.end(), logits,
                   logits + count * runner_->model().config.vocab);
  }
  return absl::OkStatus();
}

void Batch::End() {
  ends_ = true;
  for (Member& member : members_) {
    if (member.strand == nullptr || !member.strand->begun()) continue;
    while (!member.strand->ended()) {
      try {
        running_ = &member;
        member.strand->Resume();
      } catch (...) {  // the first error ends the batch
      }
    }
  }
  for (Member& member : members_) member.session.runner().ShareSteps(nullptr);
  waiting_.clear();
  members_.clear();
  ends_ = false;
}

// ---- On the strand of a call ----

bool Batch::OnCaller(absl::FunctionRef<void()> work) {
  if (ends_) return false;
  Member& own = *running_;
  own.work = &work;
  own.strand->Yield();
  own.work = nullptr;
  return !ends_;
}

absl::Status Batch::Pass(const SequenceRows& rows, const StepKind& kind,
                         bool certain, Cancelled cancelled) {
  if (ends_) return CancelledError();
  Member& own = *running_;
  Wanted wanted = {rows, kind, certain, cancelled};
  own.wanted = &wanted;
  own.strand->Yield();
  own.wanted = nullptr;
  return ends_ ? CancelledError() : wanted.status;
}

absl::StatusOr<const float*> Batch::RowLogits(int64_t first,
                                              int64_t /*count*/) {
  return logits_.data() +
         (running_->first_row + first) * runner_->model().config.vocab;
}

}  // namespace tiercel
