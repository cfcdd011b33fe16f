#include "runtime/policies/sadas/sadas.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "lib/status/status_macros.h"
#include "runtime/drafting/draft_costs.h"
#include "runtime/policies/sadas/sadas_params.h"

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
  return ViewOf(params, track.schedule(), session.sequence().first_position(),
                track.prompt(), session.kv().plan().context);
}

}  // namespace

ThinkTrack::ThinkTrack(const ThinkSchedule::Options& options,
                       const Session& session,
                       const std::vector<int32_t>& header)
    : prompt_(std::ssize(session.sequence().tokens())),
      schedule_(options, prompt_,
                HeaderOf(session.sequence().tokens(), header)) {}

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
  const View view =
      ViewOf(policy_.parts_.params.Own<SadasParams>(), track_, session());
  const bool fast = !view.IsFull();
  const absl::Status status =
      ReadOver(fast ? Phase::kFast : Phase::kVerify, view);
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
  sweeps_.emplace(parts_.OverAll(distribution));
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
      .gamma1 = parts_.Length(params.gamma1, PolicyParams::kGamma1,
                              [&](const DraftCosts& costs) {
                                return costs.WindowPassInProposals(
                                    params.Own<SadasParams>().window);
                              })};
  const auto within = [this](const std::vector<int32_t>& /*tokens*/,
                             const std::vector<int32_t>& block) {
    return WithinMode(block);
  };
  window_.emplace(
      session, DraftDistribution(distribution),
      WindowOf(params.Own<SadasParams>(), session.sequence().first_position(),
               track_->prompt()),
      drafting);
  thinking_.emplace(*window_, within);
  options.drafter = &*thinking_;
  options.over_view = params.RetrievalView().has_value();
  options.length = parts_.Length(
      params.gamma2, PolicyParams::kGamma2, [&](const DraftCosts& costs) {
        return costs.SweepInWindowPasses(params.Own<SadasParams>().window);
      });
  think_rounds_.emplace(session, *target_, options);
  if (!options.over_view) return think_rounds_->Begin();

  middle_.emplace(parts_.OverView(distribution));
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

std::vector<PolicyKey> SadasKind::keys() const {
  return {
      {"gate", "state",
       "which tokens read the newest alone: those between the tags; literal: "
       "all, the prompt's too, until the closing tag; always: all of the "
       "answer"},
      {"open", "<think>",
       "the tag that begins the thinking; where the model's template or "
       "vocabulary names others, these"},
      {"close", "</think>", "the one that ends it"},
      {"think", "off", "on: the answer thinks from its first token on"},
      {"most", "0",
       "so many tokens of thinking at most, then it is closed; 0: no limit"},
      {"latch", "on", "an answer thinks once; off: at each opening tag"},
      {"pin", "none", "prompt: thinking reads the prompt, too"},
      {"answer", "all",
       "--plain: what the answer reads, the thinking done: everything; kept: "
       "what was the newest then, and all since"}};
}

absl::Status SadasKind::Read(const PolicyRequest& request,
                             PolicyParams* params) const {
  // The window and sink of a request are those of SADAS, not of the view.
  ReadView({.budget = request.budget, .chunk = request.chunk}, &params->view);
  SadasParams& sadas = params->Own<SadasParams>();
  RETURN_IF_ERROR(ReadSizes({{"window", request.window, &sadas.window},
                             {"sink", request.sink, &sadas.sink}}));
  return sadas.Set(request.settings);
}

absl::Status SadasKind::Check(const Model& target,
                              const PolicyParams& params) const {
  return ThinkOptionsOf(target, params.Own<SadasParams>()).status();
}

std::vector<std::string> SadasKind::UnusedKeys(
    const PolicyParams& params) const {
  if (params.form != PolicyForm::kVerified) return {};
  return params.Own<SadasParams>().plain_keys;
}

std::string SadasKind::Warning(const Model& target,
                               const PolicyParams& params) const {
  const SadasParams& sadas = params.Own<SadasParams>();
  if (sadas.gate != ThinkGate::kState || sadas.begins_open ||
      sadas.open != SadasParams().open) {
    return "";
  }
  const absl::StatusOr<ThinkSchedule::Options> tags =
      ThinkOptionsOf(target, sadas);
  const bool is_token = tags.ok() && tags->open.size() == 1;
  const std::string open = TagsOf(target, sadas).open;
  const bool in_template =
      target.chat_template != nullptr &&
      target.chat_template->source().find(open) != std::string::npos;
  if (!tags.ok() || is_token || in_template) return "";
  return absl::StrCat(
      "policy sadas: does nothing while a text has no ", open,
      ", nor have the model's vocabulary and chat template: it ",
      params.form == PolicyForm::kPlain ? "reads everything, as full does"
                                        : "drafts as triforce does");
}

std::optional<RetrievalSize> SadasKind::RetrievalView(
    const PolicyParams& params) const {
  const bool answers = params.Own<SadasParams>().gate != ThinkGate::kAlways;
  if (!answers && params.proposer != Proposer::kSelf) return std::nullopt;
  return PolicyKind::RetrievalView(params);
}

void SadasKind::AddNeeds(const Model& /*target*/, const PolicyParams& params,
                         SessionOptions* options) const {
  const SadasParams& sadas = params.Own<SadasParams>();
  options->kept_first = sadas.sink;
  options->kept_newest = sadas.window;
  if (params.form == PolicyForm::kPlain) {
    options->prompt_view = PromptViewOf(sadas);
  }
}

double SadasKind::DraftSeconds(const PolicyParams& params,
                               const SessionSite& site, const Rates& rates,
                               int64_t length) const {
  const SadasParams& sadas = params.Own<SadasParams>();
  const double over_window = rates.StepSeconds(
      site.config.layers, std::min(length, sadas.window + sadas.sink));
  if (!params.RetrievalView().has_value()) return over_window;
  return std::min(over_window,
                  PolicyKind::DraftSeconds(params, site, rates, length));
}

absl::StatusOr<std::unique_ptr<Policy>> SadasKind::Make(
    PolicyParts parts) const {
  const Model& model = parts.session.model();
  ASSIGN_OR_RETURN(ThinkSchedule::Options options,
                   ThinkOptionsOf(model, parts.params.Own<SadasParams>()));
  ThinkParts think = {.options = std::move(options),
                      .header = model.AssistantHeader()};
  if (parts.params.form == PolicyForm::kPlain) {
    return std::make_unique<SadasPlain>(std::move(parts), std::move(think));
  }
  return std::make_unique<SadasVerified>(std::move(parts), std::move(think));
}

}  // namespace tiercel
