#include "runtime/policy/sadas.h"

#include <algorithm>
#include <iterator>

#include "runtime/drafting/draft_costs.h"

namespace tiercel {
namespace {

// Returns the header if the tokens end in it, else nothing.
std::vector<int32_t> HeaderOf(const std::vector<int32_t>& tokens,
                              const std::vector<int32_t>& header) {
  const bool ends_in_it =
      tokens.size() >= header.size() &&
      std::equal(header.rbegin(), header.rend(), tokens.rbegin());
  return ends_in_it ? header : std::vector<int32_t>();
}

View ViewOf(const SadasParams& params, const ThinkTrack& track,
            const Session& session) {
  return ViewOf(params, track.schedule(), session.first_position(),
                track.prompt(), session.plan().context);
}

}  // namespace

ThinkTrack::ThinkTrack(const ThinkSchedule::Options& options,
                       const Session& session,
                       const std::vector<int32_t>& header)
    : prompt_(std::ssize(session.tokens())),
      schedule_(options, prompt_, HeaderOf(session.tokens(), header)) {}

void ThinkTrack::Advance(int32_t id) {
  schedule_.Advance(id);
  report_.Note(schedule_.thinking() ? "think" : "answer", tokens_++);
}

absl::StatusOr<VerifiedBlock> ThinkTrack::Next(Rounds& rounds) {
  absl::StatusOr<VerifiedBlock> block = rounds.Next(tokens_, &report_);
  if (!block.ok()) return block;
  for (const int32_t id : block->tokens) Advance(id);
  return block;
}

// ---- Plain ----

absl::Status SadasPlain::Begin(const DistributionParams& distribution,
                               uint64_t seed) {
  Session& session = parts_.session;
  track_.emplace(think_.options, session, think_.header);
  steps_.emplace(*this, session, distribution, *track_);
  target_.emplace(*steps_, track_->schedule());
  rounds_.emplace(session, *target_, Rounds::Options{.seed = seed});
  return steps_->Begin();
}

absl::StatusOr<StepTarget::Speed> SadasPlain::Steps::Step() {
  const View view = ViewOf(policy_.parts_.params.sadas, track_, session());
  const bool fast = !view.IsFull();
  const absl::Status status =
      session().Step(fast ? Phase::kFast : Phase::kVerify, view);
  if (!status.ok()) return status;
  return fast ? Speed::kFast : Speed::kSlow;
}

RoundsReport SadasPlain::report() const {
  RoundsReport report = rounds_->report();
  report.schedule = track_->report();
  steps_->AddTo(&report);
  report.schedule->fast_positions = parts_.params.PlannedSteps().positions;
  return report;
}

// ---- Verified ----

size_t SadasVerified::WithinMode(const std::vector<int32_t>& block) const {
  ThinkSchedule ahead = track_->schedule();
  const bool mode = ahead.windowed();
  size_t within = 0;
  while (within < block.size() && !ahead.forced().has_value()) {
    ahead.Advance(block[within++]);
    if (ahead.windowed() != mode) break;
  }
  return within;
}

absl::Status SadasVerified::Begin(const DistributionParams& distribution,
                                  uint64_t seed) {
  const PolicyParams& params = parts_.params;
  Session& session = parts_.session;
  track_.emplace(think_.options, session, think_.header);
  sweeps_.emplace(session, distribution);
  target_.emplace(*sweeps_, track_->schedule());
  Rounds::Options options = {.seed = seed, .verify = params.verify};
  if (params.form == PolicyForm::kBaseline) {
    think_rounds_.emplace(session, *target_, options);
    return think_rounds_->Begin();
  }
  proposer_.emplace(session, distribution, parts_.proposer);
  const VerifyingDrafter::Options drafting = {
      .name = "window",
      .mode = params.verify,
      .inner = proposer_->drafter(),
      .gamma1 = parts_.Length(
          params.gamma1, PolicyParams::kGamma1, [&](const DraftCosts& costs) {
            return costs.WindowPassInProposals(params.sadas.window);
          })};
  const auto within = [this](const std::vector<int32_t>& block) {
    return WithinMode(block);
  };
  window_.emplace(
      session, DraftDistribution(distribution),
      WindowOf(params.sadas, session.first_position(), track_->prompt()),
      drafting);
  thinking_.emplace(*window_, within);
  options.drafter = &*thinking_;
  options.over_view = params.NeedsView();
  options.length = parts_.Length(
      params.gamma2, PolicyParams::kGamma2, [&](const DraftCosts& costs) {
        return costs.SweepInWindowPasses(params.sadas.window);
      });
  think_rounds_.emplace(session, *target_, options);
  if (!options.over_view) return think_rounds_->Begin();

  middle_.emplace(
      session, RetrievalTarget::Options{.distribution =
                                            DraftDistribution(distribution)});
  retrieval_.emplace(*middle_, parts_.ViewDrafts(proposer_->drafter()));
  answering_.emplace(*retrieval_, within);
  answer_rounds_.emplace(session, *target_,
                         parts_.SweepsOfViewDrafts(seed, &*answering_));
  return answer_rounds_->Begin();
}

absl::StatusOr<VerifiedBlock> SadasVerified::NextBlock() {
  const bool windowed =
      track_->schedule().windowed() || !answer_rounds_.has_value();
  return track_->Next(*(windowed ? think_rounds_ : answer_rounds_));
}

RoundsReport SadasVerified::report() const {
  RoundsReport report = think_rounds_->report();
  if (answer_rounds_.has_value()) report += answer_rounds_->report();
  report.schedule = track_->report();
  return report;
}

}  // namespace tiercel
