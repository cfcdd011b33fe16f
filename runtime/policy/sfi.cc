#include "runtime/policy/sfi.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "lib/status/status_macros.h"

namespace tiercel {

// ---- Plain ----

absl::Status SfiPlain::Begin(const DistributionParams& distribution,
                             uint64_t seed) {
  Session& session = parts_.session;
  steps_.emplace(session, distribution,
                 SfiSchedule(options_, std::ssize(session.tokens())));
  rounds_.emplace(session, *steps_, Rounds::Options{.seed = seed});
  session.DropProvisional();
  return session.tokens().empty() ? absl::OkStatus()
                                  : session.CatchUpForDrafts(Phase::kVerify);
}

absl::StatusOr<StepTarget::Speed> SfiPlain::Steps::Step() {
  // If the view is not ready, or has no room for one more row, the step reads
  // everything and rebuilds it.
  const bool slow = schedule_.slow() || !session().ViewHasRoom(1);
  if (!slow) {
    RETURN_IF_ERROR(session().ViewStep(Phase::kFast));
    return Speed::kFast;
  }
  report_.slow_at.push_back(tokens_);
  report_.reason_at.emplace_back(NameOf(schedule_.reason()));
  session().KeepViewPlaces();
  RETURN_IF_ERROR(session().Step(Phase::kVerify, View::Full()));
  report_.coverage_at.push_back(session().ViewCoverage());
  return Speed::kSlow;
}

void SfiPlain::Steps::Advance(int32_t id) {
  schedule_.Advance(id);
  report_.Note(schedule_.slow() ? "slow" : "fast", tokens_++);
}

RoundsReport SfiPlain::report() const {
  RoundsReport report = rounds_->report();
  report.schedule = steps_->report();
  steps_->AddTo(&report);
  report.schedule->fast_positions = parts_.params.PlannedSteps().positions;
  report.schedule->selected = parts_.params.sfi.Selected();
  return report;
}

// ---- Verified ----

absl::Status SfiVerified::Begin(const DistributionParams& distribution,
                                uint64_t seed) {
  Session& session = parts_.session;
  schedule_.emplace(options_, std::ssize(session.tokens()));
  tokens_ = 0;
  report_ = {};
  target_.emplace(session, distribution);
  proposer_.emplace(session, distribution, parts_.proposer);
  middle_.emplace(
      session, RetrievalTarget::Options{.distribution =
                                            DraftDistribution(distribution)});
  retrieval_.emplace(*middle_, parts_.ViewDrafts(proposer_->drafter()));
  drafter_.emplace(*retrieval_, [this](const std::vector<int32_t>& block) {
    SfiSchedule ahead = *schedule_;
    size_t length = 0;
    while (length < block.size()) {
      ahead.Advance(block[length++]);
      if (ahead.at_boundary()) break;
    }
    return length;
  });
  rounds_.emplace(session, *target_,
                  parts_.SweepsOfViewDrafts(seed, &*drafter_));
  return rounds_->Begin();
}

absl::StatusOr<VerifiedBlock> SfiVerified::NextBlock() {
  absl::StatusOr<VerifiedBlock> block = rounds_->Next(tokens_, &report_);
  if (!block.ok()) return block;
  for (const int32_t id : block->tokens) schedule_->Advance(id);
  if (report_.swept()) {
    report_.slow_at.push_back(tokens_);
    report_.coverage_at.push_back(parts_.session.ViewCoverage());
  }
  tokens_ += std::ssize(block->tokens);
  return block;
}

RoundsReport SfiVerified::report() const {
  RoundsReport report = rounds_->report();
  report.schedule = report_;
  report.schedule->selected = parts_.params.sfi.Selected();
  return report;
}

}  // namespace tiercel
