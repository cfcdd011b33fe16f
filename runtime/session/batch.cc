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
  const Phase phase = waiting_.front()->wanted->phase;
  std::vector<Member*> group;
  int64_t rows = 0;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const Wanted& wanted = *(*at)->wanted;
    if (wanted.phase != phase || rows + wanted.rows.count > kMaxStepRows) {
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
  absl::Status status = runner_->PassTogether(
      absl::MakeSpan(steps), whose.front()->wanted->phase, all_cancelled);
  int64_t rows = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    whose[i]->wanted->status = steps[i].status;
    whose[i]->wanted->waits = steps[i].waits;
    whose[i]->first_row = steps[i].first_row;
    if (steps[i].first_row >= 0) rows += steps[i].rows.count;
  }
  if (status.ok() && rows > 0) {
    const absl::StatusOr<const float*> logits = runner_->RowLogits(0, rows);
    status = logits.status();
    if (logits.ok()) {
      logits_.assign(*logits, *logits + rows * runner_->model().config.vocab);
    }
  }
  runner_->Rest();
  ++passes_.passes;
  passes_.rows += rows;
  for (Member* const member : whose) {
    member->wanted->status.Update(status);
    passes_.steps += member->wanted->waits ? 0 : 1;
  }
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

absl::Status Batch::Pass(const SequenceRows& rows, Phase phase, bool certain,
                         Cancelled cancelled) {
  if (ends_) return CancelledError();
  Member& own = *running_;
  Wanted wanted = {rows, phase, certain, cancelled};
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
