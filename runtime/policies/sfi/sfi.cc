#include "runtime/policies/sfi/sfi.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "lib/status/status_macros.h"
#include "runtime/policies/sfi/sfi_params.h"

namespace tiercel {

// ---- Plain ----

absl::Status SfiPlain::Begin(const DistributionParams& distribution,
                             uint64_t seed) {
  Session& session = parts_.session;
  steps_.emplace(
      session, distribution,
      SfiSchedule(options_, std::ssize(session.sequence().tokens())));
  rounds_.emplace(session, *steps_, Rounds::Options{.seed = seed});
  session.DropProvisional();
  return session.sequence().tokens().empty()
             ? absl::OkStatus()
             : session.draft_view().CatchUp(Phase::kVerify);
}

absl::StatusOr<StepTarget::Speed> SfiPlain::Steps::Step() {
  // If the view is not ready, or has no room for one more row, the step reads
  // everything and rebuilds it.
  const bool slow = schedule_.slow() || !session().draft_view().HasRoom(1);
  if (!slow) {
    RETURN_IF_ERROR(session().draft_view().Step(Phase::kFast));
    return Speed::kFast;
  }
  report_.slow_at.push_back(tokens_);
  report_.reason_at.emplace_back(NameOf(schedule_.reason()));
  session().draft_view().KeepPlaces();
  RETURN_IF_ERROR(ReadOver(Phase::kVerify, View::Full()));
  report_.coverage_at.push_back(session().draft_view().coverage());
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
  report.schedule->selected = parts_.params.Own<SfiParams>().Selected();
  return report;
}

// ---- Verified ----

absl::Status SfiVerified::Begin(const DistributionParams& distribution,
                                uint64_t seed) {
  Session& session = parts_.session;
  schedule_.emplace(options_, std::ssize(session.sequence().tokens()));
  tokens_ = 0;
  report_ = {};
  target_.emplace(parts_.OverAll(distribution));
  proposer_.emplace(session, distribution, parts_.proposer);
  middle_.emplace(parts_.OverView(distribution));
  retrieval_.emplace(*middle_, parts_.ViewDrafts(proposer_->drafter()));
  drafter_.emplace(*retrieval_, [this](const std::vector<int32_t>& /*tokens*/,
                                       const std::vector<int32_t>& block) {
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
    report_.coverage_at.push_back(parts_.session.draft_view().coverage());
  }
  tokens_ += std::ssize(block->tokens);
  return block;
}

RoundsReport SfiVerified::report() const {
  RoundsReport report = rounds_->report();
  report.schedule = report_;
  report.schedule->selected = parts_.params.Own<SfiParams>().Selected();
  return report;
}

std::vector<PolicyKey> SfiKind::keys() const {
  return {{"interval", "64",
           "--plain: after so many tokens at most the whole text is read, and "
           "what of it is read until the next time is chosen anew"},
          {"gap", "16", "--plain: and after so many at least"},
          {"trigger", "sentence",
           "--plain: when between the two: at a sentence's end; fixed: after "
           "the interval; random: by chance, as often as fixed; never: at the "
           "beginning alone"},
          {"fire", "end", "start: where the next sentence begins, instead"},
          {"spacing", "gap",
           "--plain: half: after half the interval at least, too"},
          {"evidence", "16",
           "the last tokens of the prompt that choose, by what they attend to"},
          {"queries", "1", "... and of the answer, each time"},
          {"drafted", "0",
           "not with --plain: so many of the guesses that are checked choose "
           "what the next ones see too, right or wrong; 63: all"},
          {"decay", "0",
           "what is left, each time, of what they attended to at the times "
           "before; 0: nothing, they do not count; 1: all"},
          {"prior", "0.25",
           "how much of the choice, at most, is a guess beforehand: for what "
           "is old, and for keys that are short; 0 to 1"},
          {"nms", "1",
           "how much a token loses to a stronger one near it, so that the "
           "choice is spread out; 0: nothing"},
          {"beside", "0",
           "so many tokens on each side of a stronger one are chosen with it "
           "instead, so that what is found is read with what stands around it"},
          {"exclusive", "0.85",
           "how much a token loses where another attention head wants it more, "
           "so that heads choose different ones; 0: nothing"}};
}

absl::Status SfiKind::Read(const PolicyRequest& request,
                           PolicyParams* params) const {
  ReadView({}, &params->view);
  SfiParams& sfi = params->Own<SfiParams>();
  if (request.chunk != 0) sfi.chunk = request.chunk;
  RETURN_IF_ERROR(ReadSizes({{"window", request.window, &sfi.window},
                             {"sink", request.sink, &sfi.sink},
                             {"budget", request.budget, &sfi.budget}}));
  RETURN_IF_ERROR(sfi.Set(request.settings));
  if (request.sink == 0) {
    sfi.sink = std::max<int64_t>(1, std::min(sfi.sink, sfi.budget));
  }
  return absl::OkStatus();
}

std::vector<std::string> SfiKind::UnusedKeys(const PolicyParams& params) const {
  const SfiParams& sfi = params.Own<SfiParams>();
  return params.form == PolicyForm::kVerified ? sfi.plain_keys
                                              : sfi.verified_keys;
}

absl::StatusOr<std::unique_ptr<Policy>> SfiKind::Make(PolicyParts parts) const {
  ASSIGN_OR_RETURN(
      SfiSchedule::Options options,
      SfiOptionsOf(parts.session.model(), parts.params.Own<SfiParams>(),
                   parts.params.form));
  if (parts.params.form == PolicyForm::kPlain) {
    return std::make_unique<SfiPlain>(std::move(parts), std::move(options));
  }
  return std::make_unique<SfiVerified>(std::move(parts), std::move(options));
}

}  // namespace tiercel
