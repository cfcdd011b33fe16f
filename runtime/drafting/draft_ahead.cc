#include "runtime/drafting/draft_ahead.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {
namespace {

// The block behind the first token of `block`, which has one; at most `most`
// tokens. A branch in place of the first is dropped.
DraftBlock Behind(DraftBlock block, int64_t most) {
  const auto end = static_cast<std::ptrdiff_t>(
      std::min<int64_t>(std::ssize(block.tokens), 1 + most));
  DraftBlock rest;
  rest.tokens.assign(block.tokens.begin() + 1, block.tokens.begin() + end);
  rest.distributions.assign(
      std::make_move_iterator(block.distributions.begin() + 1),
      std::make_move_iterator(block.distributions.begin() + end));
  for (DraftBranch& branch : block.branches) {
    if (branch.at == 0 || branch.at > rest.tokens.size()) continue;
    --branch.at;
    rest.branches.push_back(std::move(branch));
  }
  return rest;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DraftAhead>> DraftAhead::Create(
    Session& session, Drafter& drafter) {
  ASSIGN_OR_RETURN(std::unique_ptr<Runner> sweeps, session.runner().Fork());
  ASSIGN_OR_RETURN(std::unique_ptr<Runner> drafts, session.runner().Fork());
  return std::unique_ptr<DraftAhead>(
      new DraftAhead(session, drafter, std::move(sweeps), std::move(drafts)));
}

DraftAhead::DraftAhead(Session& session, Drafter& drafter,
                       std::unique_ptr<Runner> sweeps,
                       std::unique_ptr<Runner> drafts)
    : session_(session),
      drafter_(drafter),
      sweeps_(std::move(sweeps)),
      drafts_(std::move(drafts)) {}

void DraftAhead::Rest() {
  sweeps_->Rest();
  drafts_->Rest();
  logits_ = {};
}

absl::StatusOr<DraftBlock> DraftAhead::Draft(const std::vector<int32_t>& tokens,
                                             int64_t most, const DrawKey& key) {
  most_ = most;
  key_ = key;
  DraftBlock next = std::exchange(next_, {});
  if (!next.tokens.empty()) {
    supposed_.push_back(next.tokens.front());
    if (supposed_ == tokens) {
      DraftBlock rest = Behind(std::move(next), most);
      if (!rest.tokens.empty()) {
        ++used_;
        return rest;
      }
    }
  }
  return drafter_.Draft(tokens, most, key);
}

absl::StatusOr<Target::TreeDistributions> DraftAhead::Check(
    Target& target, const DraftBlock& block) {
  next_ = {};
  const int64_t drafted = std::ssize(block.tokens);
  // The view grows by kMaxStepRows rows at most, of which the block has its own
  // and that of the token before it.
  next_most_ = std::min({most_ + 1, session_.sequence().room() - drafted - 1,
                         kMaxStepRows - drafted - 1});
  if (drafted == 0 || next_most_ < 2 || lacks_memory_) {
    return target.OfTree(block);
  }
  supposed_ = session_.sequence().tokens();
  key_.start += drafted;
  supposed_.insert(supposed_.end(), block.tokens.begin(), block.tokens.end());
  Runner& runner = session_.runner();
  SharedPasses* const others = runner.ShareSteps(this);
  const absl::Cleanup end = [&] { runner.ShareSteps(others); };
  if (others != nullptr) runner.ShareSteps(others);  // they pass the sweep
  return target.OfTree(block);
}

absl::Status DraftAhead::Pass(absl::Span<JointStep> steps,
                              Cancelled cancelled) {
  drafts_last_ = steps.front().kind.IsDraft();
  if (!drafts_last_) return Sweep(steps, cancelled);
  // A draft's first pass writes the last token's row of a layer before the
  // sweep does, whose row stays.
  steps.front().before_layer = [this](int) {
    if (drafted_layers_ > 0 && drafted_layers_ % layers_in_turn_ == 0) {
      ResumeSweep();
    }
    ++drafted_layers_;
    return absl::OkStatus();
  };
  return drafts_->PassTogether(steps, cancelled);
}

absl::Status DraftAhead::Sweep(absl::Span<JointStep> steps,
                               Cancelled cancelled) {
  absl::Status status;
  const auto body = [&] { status = sweeps_->PassTogether(steps, cancelled); };
  // Without a thread the sweep has no company.
  absl::StatusOr<std::unique_ptr<Strand>> strand = Strand::Create(body);
  if (strand.ok()) {
    sweep_ = *std::move(strand);
    const absl::Cleanup end = [&] {
      sweep_->Finish();  // if an exception is on its way
      sweep_ = nullptr;
    };
    steps.front().before_layer = [this](int) {
      sweep_->Yield();
      return absl::OkStatus();
    };
    sweep_->Resume();
    if (!sweep_->ended()) DraftNext();
    while (!sweep_->ended()) sweep_->Resume();
  } else {
    body();
  }
  drafts_last_ = false;
  int64_t rows = 0;
  for (const JointStep& step : steps) rows = std::max(rows, step.last_row + 1);
  logits_.clear();
  if (status.ok()) status = AppendLogits(*sweeps_, {0, rows}, &logits_);
  // After an error the sweep's last layers may still be on their way.
  status.Update(sweeps_->stream().Synchronize());
  sweeps_->Rest();
  status.Update(std::exchange(failed_, absl::OkStatus()));
  return status;
}

void DraftAhead::ResumeSweep() {
  if (sweep_->ended() || !drafts_->stream().Synchronize().ok()) return;
  // The sweep sees the view without a draft's rows.
  DraftView& view = session_.draft_view();
  const int64_t end = view.end();
  view.Truncate(view_end_);
  sweep_->Resume();
  view.Truncate(end);
}

void DraftAhead::DraftNext() {
  DraftView& view = session_.draft_view();
  view_end_ = view.end();
  const int64_t last =
      session_.sequence().first_position() + std::ssize(supposed_) - 1;
  if (!view.HasRoom(last - view_end_ + next_most_)) return;
  const int64_t layers = session_.model().config.layers;
  const int64_t expected =
      drafted_layers_ > 0 ? drafted_layers_ : next_most_ * layers;
  layers_in_turn_ = std::max<int64_t>(1, expected / layers);
  drafted_layers_ = 0;
  // The draft of the block that is being checked has left its rows there, but
  // for the last token's.
  view.Truncate(last);
  const absl::Cleanup end = [&] { view.Truncate(view_end_); };
  absl::StatusOr<DraftBlock> next = drafter_.Draft(supposed_, next_most_, key_);
  if (next.ok()) {
    next_ = *std::move(next);
  } else if (ClassOf(next.status()) == ErrorClass::kMemory) {
    lacks_memory_ = true;
  } else {
    failed_ = next.status();
  }
}

absl::StatusOr<const float*> DraftAhead::RowLogits(int64_t first,
                                                   int64_t count) {
  if (drafts_last_) return drafts_->RowLogits(first, count);
  return logits_.data() + first * session_.model().config.vocab;
}

}  // namespace tiercel
