#include "runtime/policies/speed/speed.h"

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/policies/speed/speed_params.h"
#include "runtime/policies/triforce/triforce.h"

namespace tiercel {

absl::Status SpeedPlain::Begin(const DistributionParams& distribution,
                               uint64_t seed) {
  steps_.emplace(parts_.session, distribution);
  rounds_.emplace(parts_.session, *steps_, Rounds::Options{.seed = seed});
  return steps_->Begin();
}

absl::StatusOr<StepTarget::Speed> SpeedPlain::Steps::Step() {
  RETURN_IF_ERROR(session().CatchUp(Phase::kFast));
  return Speed::kFast;
}

RoundsReport SpeedPlain::report() const {
  RoundsReport report = rounds_->report();
  steps_->AddTo(&report);
  return report;
}

std::vector<PolicyKey> SpeedKind::keys() const {
  return {{"cut", "N",
           "the layers above the first N do not see the prompt (default: three "
           "quarters of all)"},
          {"tail", "auto",
           "... but for its last N tokens (auto: those that the chat template "
           "ends it with, or one)"},
          {"anchor", "1", "... and its first N"},
          {"past", "drop",
           "--plain: keep: earlier answers of the conversation stay in all "
           "layers"}};
}

absl::Status SpeedKind::Read(const PolicyRequest& request,
                             PolicyParams* params) const {
  ReadView(request, &params->view);
  return params->Own<SpeedParams>().Set(request.settings);
}

absl::Status SpeedKind::Check(const Model& target,
                              const PolicyParams& params) const {
  const SpeedParams& speed = params.Own<SpeedParams>();
  if (speed.cut.has_value()) {
    RETURN_IF_ERROR(CheckCut(target.config, *speed.cut));
  }
  RETURN_IF_ERROR(CheckPromptDepth(target.config, speed.depth));
  // Drafts see the anchor as the first tokens of their view.
  if (params.form == PolicyForm::kVerified &&
      speed.depth.anchor > params.view.budget) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("settings of speed: anchor: got ", speed.depth.anchor,
                     ", need 0 to the budget's ", params.view.budget));
  }
  return absl::OkStatus();
}

std::vector<std::string> SpeedKind::UnusedKeys(
    const PolicyParams& params) const {
  if (params.form != PolicyForm::kVerified) return {};
  return params.Own<SpeedParams>().plain_keys;
}

std::optional<RetrievalSize> SpeedKind::RetrievalView(
    const PolicyParams& params) const {
  std::optional<RetrievalSize> size = PolicyKind::RetrievalView(params);
  if (size.has_value()) {
    size->sink = std::max(size->sink, params.Own<SpeedParams>().depth.anchor);
  }
  return size;
}

void SpeedKind::AddNeeds(const Model& target, const PolicyParams& params,
                         SessionOptions* options) const {
  options->extent = params.Own<SpeedParams>()
                        .depth.Of(target.config)
                        .ExtentIn(*target.checkpoint);
}

double SpeedKind::DraftSeconds(const PolicyParams& params,
                               const SessionSite& site, const Rates& rates,
                               int64_t length) const {
  // Above the cut there are the anchor and the answer alone.
  const PromptDepth& depth = params.Own<SpeedParams>().depth;
  const int cut = depth.Of(site.config).cut;
  return rates.StepSeconds(cut, DraftPositions(params, length)) +
         rates.StepSeconds(site.config.layers - cut, depth.anchor) -
         rates.logits_s;
}

absl::StatusOr<std::unique_ptr<Policy>> SpeedKind::Make(
    PolicyParts parts) const {
  if (parts.params.form == PolicyForm::kPlain) {
    return std::make_unique<SpeedPlain>(std::move(parts));
  }
  return std::make_unique<TriForcePolicy>(std::move(parts));
}

}  // namespace tiercel
