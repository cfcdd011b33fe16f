#include "runtime/policies/policy.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/model/draft_model.h"
#include "runtime/policies/policy_kind.h"
#include "runtime/policies/policy_parts.h"

namespace tiercel {
namespace {

absl::Status CheckDraftAhead(const Model& target, const PolicyParams& params) {
  if (!params.policy->drafts_ahead()) {
    return UsageError("invalid_argument", "draft_ahead: the policy cannot");
  }
  if (params.verify != VerifyMode::kCoupled) {
    return UsageError("invalid_argument",
                      "draft_ahead: needs verify coupled, under which it "
                      "changes no token");
  }
  if (params.view.selection.has_value()) {
    return UsageError("invalid_argument",
                      "draft_ahead: got chunks of one token, which a sweep "
                      "chooses anew as it passes; need 8 or more");
  }
  if (params.proposer == Proposer::kSelf) {
    return UsageError("invalid_argument",
                      "draft_ahead: got draft self, which writes rows of the "
                      "view anew that the sweep has filled; need another");
  }
  if (target.ranks() > 1) {
    return UsageError("invalid_argument",
                      absl::StrCat("draft_ahead: got a model of ",
                                   target.ranks(), " ranks, need one"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPolicy(const Model& target, const PolicyParams& params) {
  const int layers = target.config.layers;
  if (params.draft_layers < 0 || params.draft_layers > layers) {
    return UsageError("invalid_argument",
                      absl::StrCat("draft_layers: got ", params.draft_layers,
                                   ", need 0 to the model's ", layers));
  }
  if (params.form != PolicyForm::kVerified) {
    if (!params.policy->has_plain()) {
      return UsageError("invalid_argument",
                        "form: the policy has none but verified");
    }
    if (params.proposer != Proposer::kNone) {
      return UsageError("invalid_argument",
                        "draft: only the verified form drafts");
    }
  }
  if (params.branches != 0 && !params.policy->has_branches()) {
    return UsageError("invalid_argument", "branches: the policy drafts none");
  }
  if (params.draft_ahead) RETURN_IF_ERROR(CheckDraftAhead(target, params));
  RETURN_IF_ERROR(params.policy->Check(target, params));
  if (params.proposer != Proposer::kSmall) return absl::OkStatus();
  return CheckDraftModel(target, *params.draft_model).status();
}

std::vector<std::string> PolicyWarnings(const Model& target,
                                        const PolicyParams& params) {
  std::vector<std::string> warnings;
  const std::vector<std::string> unused = params.policy->UnusedKeys(params);
  if (!unused.empty()) {
    warnings.push_back(absl::StrCat(
        "settings of ", std::string(params.policy->name()), ": ",
        absl::StrJoin(unused, ", "), ": no effect in the ",
        params.form == PolicyForm::kVerified ? "verified" : "plain", " form"));
  }
  if (params.form != PolicyForm::kBaseline) {
    std::string warning = params.policy->Warning(target, params);
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

std::optional<RetrievalSize> PolicyParams::RetrievalView() const {
  if (form == PolicyForm::kBaseline) return std::nullopt;
  return policy->RetrievalView(*this);
}

FastSteps PolicyParams::PlannedSteps() const {
  return form == PolicyForm::kPlain ? policy->PlannedSteps(*this) : FastSteps();
}

SessionOptions PolicyParams::OptionsFor(const Model& target,
                                        SessionOptions options) const {
  options.retrieval = RetrievalView();
  options.branches = MostBranches();
  options.draft_ahead = draft_ahead && form == PolicyForm::kVerified;
  if (form == PolicyForm::kBaseline) return options;
  options.distributions = policy->Distributions(*this);
  policy->AddNeeds(target, *this, &options);
  return options;
}

absl::StatusOr<DraftWindow> DraftWindowOf(const PolicyParams& params) {
  return params.draft_window.Within(params.draft_model->config.context);
}

SessionOptions DraftSessionOptions(const DraftWindow& window) {
  return {.context = window.Context(), .on_device = true};
}

absl::StatusOr<std::unique_ptr<Session>> NewDraftSession(
    const PolicyParams& params) {
  if (params.proposer != Proposer::kSmall) return nullptr;
  ASSIGN_OR_RETURN(const DraftWindow window, DraftWindowOf(params));
  absl::StatusOr<std::unique_ptr<Session>> made =
      Session::Create(*params.draft_model, DraftSessionOptions(window));
  if (!made.ok()) return Annotate(made.status(), "draft model");
  return made;
}

absl::StatusOr<std::unique_ptr<Policy>> Policy::Create(
    Session& session, const PolicyParams& params,
    std::unique_ptr<Session> draft_session) {
  ProposerParams proposer = {.kind = params.proposer,
                             .verify = params.verify,
                             .draft_layers = params.draft_layers};
  Session* const drafts = draft_session.get();
  if (drafts != nullptr) {
    ASSIGN_OR_RETURN(const DraftWindow window, DraftWindowOf(params));
    drafts->cancellation().Follow(session.cancellation());
    proposer.draft_session = drafts;
    proposer.draft_window = window;
    ASSIGN_OR_RETURN(SharedTokens shared,
                     CheckDraftModel(session.model(), drafts->model()));
    proposer.shared = std::make_shared<const SharedTokens>(std::move(shared));
  }
  const PolicyKind& kind =
      params.form == PolicyForm::kBaseline && !params.policy->HasBaseline()
          ? *PolicyNamed("full")
          : *params.policy;
  absl::StatusOr<std::unique_ptr<Policy>> policy =
      kind.Make({session, params, std::move(draft_session), proposer});
  if (policy.ok()) (*policy)->draft_session_ = drafts;
  return policy;
}

}  // namespace tiercel
