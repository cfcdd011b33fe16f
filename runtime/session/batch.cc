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

absl::Status Batch::Run(std::vector<Call> calls,
                        std::optional<Arrivals> arrivals) {
  const absl::Cleanup end = [this] { End(); };
  arrivals_may_come_ = arrivals.has_value();
  for (Call& call : calls) RETURN_IF_ERROR(Add(std::move(call)));
  for (auto next = members_.begin(); next != members_.end();) {
    Resume(*next++);
  }
  for (;;) {
    std::vector<Call> arrived;
    if (arrivals.has_value()) arrived = (*arrivals)();
    for (Call& call : arrived) {
      const auto ended = call.ended;
      const absl::Status added = Add(std::move(call));
      if (added.ok()) {
        Resume(members_.back());
      } else if (ended) {
        ended(added);
      }
    }
    for (Member* const member : std::exchange(alone_, {})) Resume(*member);
    if (waiting_.empty() && alone_.empty()) break;
    if (waiting_.empty()) continue;
    const std::vector<Member*> group = TakeGroup();
    PassGroup(group);
    // Members for which there was no room are the first of the next pass.
    for (auto each = group.rbegin(); each != group.rend(); ++each) {
      if ((*each)->wanted->waits()) waiting_.push_front(*each);
    }
    for (Member* const member : group) {
      if (!member->wanted->waits()) Resume(*member);
    }
  }
  return absl::OkStatus();
}

absl::Status Batch::Add(Call call) {
  ASSIGN_OR_RETURN(std::unique_ptr<Strand> strand,
                   Strand::Create(std::move(call.run)));
  call.session.runner().ShareSteps(this);
  members_.push_back({.session = call.session,
                      .ended = std::move(call.ended),
                      .strand = std::move(strand)});
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
  if (!member.strand->ended()) {
    if (member.wanted != nullptr) {
      waiting_.push_back(&member);
    } else {
      alone_.push_back(&member);
    }
    return;
  }
  member.session.runner().Rest();
  member.session.runner().ShareSteps(nullptr);
  const auto ended = std::move(member.ended);
  members_.remove_if([&](const Member& m) { return &m == &member; });
  if (ended) ended(absl::OkStatus());
}

int64_t Batch::Wanted::rows() const {
  int64_t rows = 0;
  for (const JointStep& step : steps) rows += step.rows.count;
  return rows;
}

std::vector<Batch::Member*> Batch::TakeGroup() {
  const auto any = [this](auto is) {
    return std::any_of(waiting_.begin(), waiting_.end(),
                       [&](const Member* m) { return is(m->wanted->kind()); });
  };
  const bool drafts = any([](const StepKind& kind) { return kind.IsDraft(); });
  const bool decodes =
      any([](const StepKind& kind) { return !kind.IsPrompt(); });
  const int64_t most = runner_->MostRowsTogether();
  const int64_t most_of_prompts = decodes ? kMaxStepRows : most;
  std::vector<Member*> group;
  int64_t rows = 0;
  int64_t of_prompts = 0;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const Wanted& wanted = *(*at)->wanted;
    const int64_t count = wanted.rows();
    const int64_t of_prompt = wanted.kind().IsPrompt() ? count : 0;
    const bool fits =
        rows + count <= most &&
        (of_prompt == 0 || of_prompts + of_prompt <= most_of_prompts);
    if (wanted.kind().IsDraft() != drafts || !(group.empty() || fits)) {
      ++at;
      continue;
    }
    rows += count;
    of_prompts += of_prompt;
    group.push_back(*at);
    at = waiting_.erase(at);
  }
  return group;
}

void Batch::PassGroup(absl::Span<Member* const> group) {
  std::vector<JointStep> steps;
  std::vector<Member*> whose;
  for (Member* const member : group) {
    Wanted& wanted = *member->wanted;
    wanted.steps.front().waits = false;
    if (wanted.cancelled()) {
      wanted.status = CancelledError();
      continue;
    }
    for (const JointStep& step : wanted.steps) steps.push_back(step);
    whose.push_back(member);
  }
  if (steps.empty()) return;
  const auto all_cancelled = [&] {
    return std::all_of(whose.begin(), whose.end(),
                       [](Member* m) { return m->wanted->cancelled(); });
  };
  absl::Status status =
      runner_->PassTogether(absl::MakeSpan(steps), all_cancelled);
  int64_t rows = 0;
  int64_t of_prompts = 0;
  int64_t held = 0;  // rows whose logits are kept
  std::vector<PositionRange> kept;
  auto passed = steps.begin();
  for (Member* const member : whose) {
    Wanted& wanted = *member->wanted;
    const bool prompt = wanted.kind().IsPrompt();
    member->logits = {.first = held, .skipped = prompt ? wanted.rows() - 1 : 0};
    int64_t own_rows = 0;
    for (JointStep& own : wanted.steps) {
      own.status = passed->status;
      own.waits = passed->waits;
      const int64_t end = (passed++)->last_row + 1;
      if (end == 0) continue;
      own_rows += own.rows.count;
      own.last_row = own_rows - 1;
      const int64_t begin = end - (prompt ? 1 : own.rows.count);
      if (kept.empty() || kept.back().end != begin)
        kept.push_back({begin, begin});
      kept.back().end = end;
      held += end - begin;
    }
    rows += own_rows;
    if (prompt) of_prompts += own_rows;
    passes_.steps += wanted.waits() ? 0 : 1;
  }
  logits_.clear();
  for (const PositionRange& range : kept) {
    if (status.ok()) status = AppendLogits(*runner_, range, &logits_);
  }
  runner_->Rest();
  ++passes_.passes;
  passes_.sweeps += steps.front().kind.IsDraft() ? 0 : 1;
  passes_.rows += rows;
  passes_.most_rows = std::max(passes_.most_rows, rows);
  if (of_prompts < rows) {
    passes_.most_rows_beside = std::max(passes_.most_rows_beside, of_prompts);
  }
  for (Member* const member : whose) member->wanted->status = status;
}

void Batch::End() {
  ends_ = true;
  for (Member& member : members_) {
    if (!member.strand->begun()) continue;
    running_ = &member;
    member.strand->Finish();  // the first error ends the batch
  }
  for (Member& member : members_) member.session.runner().ShareSteps(nullptr);
  waiting_.clear();
  alone_.clear();
  members_.clear();
  ends_ = false;
}

// ---- On the strand of a call ----

bool Batch::OthersWait() const {
  return std::any_of(members_.begin(), members_.end(), [this](const Member& m) {
    return &m != running_ && m.strand->begun() && !m.strand->ended();
  });
}

absl::Status Batch::LetOthers() {
  if (ends_) return CancelledError();
  if (members_.size() > 1 || arrivals_may_come_) running_->strand->Yield();
  return ends_ ? CancelledError() : absl::OkStatus();
}

bool Batch::OnCaller(absl::FunctionRef<void()> work) {
  if (ends_) return false;
  Member& own = *running_;
  own.work = &work;
  own.strand->Yield();
  own.work = nullptr;
  return !ends_;
}

absl::Status Batch::Pass(absl::Span<JointStep> steps, Cancelled cancelled) {
  if (ends_) return CancelledError();
  Member& own = *running_;
  Wanted wanted = {steps, cancelled};
  own.wanted = &wanted;
  own.strand->Yield();
  own.wanted = nullptr;
  return ends_ ? CancelledError() : wanted.status;
}

absl::StatusOr<const float*> Batch::RowLogits(int64_t first,
                                              int64_t /*count*/) {
  const auto& [kept, skipped] = running_->logits;
  if (first < skipped) {
    return InternalError("internal", "a prompt's row has no logits");
  }
  return logits_.data() +
         (kept + first - skipped) * runner_->model().config.vocab;
}

}  // namespace tiercel
