#include "runtime/policy/policy.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "runtime/model/draft_model.h"
#include "runtime/policy/full.h"
#include "runtime/policy/policy_parts.h"
#include "runtime/policy/sadas.h"
#include "runtime/policy/sfi.h"
#include "runtime/policy/speed.h"
#include "runtime/policy/triforce.h"

namespace tiercel {
absl::Status CheckPolicy(const Model& target, const PolicyParams& params) {
  const int layers = target.config.layers;
  if (params.draft_layers < 0 || params.draft_layers > layers) {
    return UsageError("invalid_argument",
                      absl::StrCat("draft_layers: got ", params.draft_layers,
                                   ", need 0 to the model's ", layers));
  }
  if (params.form != PolicyForm::kVerified) {
    if (params.policy != PolicyName::kSadas &&
        params.policy != PolicyName::kSfi &&
        params.policy != PolicyName::kSpeed) {
      return UsageError("invalid_argument",
                        "form: the policy has none but verified");
    }
    if (params.proposer != Proposer::kNone) {
      return UsageError("invalid_argument",
                        "draft: nobody drafts but for the verified form");
    }
  }
  if (params.policy == PolicyName::kSadas) {
    ASSIGN_OR_RETURN(const ThinkSchedule::Options options,
                     ThinkOptionsOf(target, params.sadas));
  }
  if (params.policy == PolicyName::kSfi) {
    ASSIGN_OR_RETURN(const SfiSchedule::Options options,
                     SfiOptionsOf(target, params.sfi));
  }
  if (params.policy == PolicyName::kSpeed) {
    if (params.speed.cut.has_value()) {
      RETURN_IF_ERROR(CheckCut(target.config, *params.speed.cut));
    }
    RETURN_IF_ERROR(CheckPromptDepth(target.config, params.speed.depth));
    // Drafts see the anchor as the first tokens of their view.
    if (params.NeedsView() && params.speed.depth.anchor > params.view.budget) {
      return UsageError(
          "invalid_argument",
          absl::StrCat("settings of speed: anchor: got ",
                       params.speed.depth.anchor, ", need 0 to the budget's ",
                       params.view.budget));
    }
  }
  if (params.proposer != Proposer::kSmall) return absl::OkStatus();
  return CheckDraftModel(target, *params.draft_model);
}

std::string_view NameOf(PolicyName policy) {
  switch (policy) {
    case PolicyName::kFull:
      return "full";
    case PolicyName::kTriForce:
      return "triforce";
    case PolicyName::kSadas:
      return "sadas";
    case PolicyName::kSfi:
      return "sfi";
    case PolicyName::kSpeed:
      return "speed";
  }
  return "";
}

namespace {

// Returns a warning about given settings that the form does not heed; "" if
// there are none.
std::string UnheededSettings(const Model& target, const PolicyParams& params) {
  const bool verified = params.form == PolicyForm::kVerified;
  std::vector<std::string> keys;
  switch (params.policy) {
    case PolicyName::kFull:
    case PolicyName::kTriForce:
      break;
    case PolicyName::kSadas:
      if (verified) keys = params.sadas.plain_keys;
      break;
    case PolicyName::kSfi:
      keys = verified ? params.sfi.plain_keys : params.sfi.verified_keys;
      // Without a tokenizer "trigger" has an effect: it says that no sentence
      // ends are looked for.
      if (target.tokenizer == nullptr) std::erase(keys, "trigger");
      break;
    case PolicyName::kSpeed:
      if (verified) keys = params.speed.plain_keys;
      break;
  }
  if (keys.empty()) return "";
  return absl::StrCat("settings of ", std::string(NameOf(params.policy)), ": ",
                      absl::StrJoin(keys, ", "), ": no effect in the ",
                      verified ? "verified" : "plain", " form");
}

// Returns a warning if SADAS waits for a tag that the model does not seem to
// write; "" if not.
std::string NeverThinks(const Model& target, const PolicyParams& params) {
  const SadasParams& sadas = params.sadas;
  if (params.policy != PolicyName::kSadas ||
      params.form == PolicyForm::kBaseline || sadas.gate != ThinkGate::kState ||
      sadas.begins_open || sadas.open != SadasParams().open) {
    return "";
  }
  const absl::StatusOr<ThinkSchedule::Options> tags =
      ThinkOptionsOf(target, sadas);
  const bool is_token = tags.ok() && tags->open.size() == 1;
  const bool in_template =
      target.chat_template != nullptr &&
      target.chat_template->source().find(sadas.open) != std::string::npos;
  if (!tags.ok() || is_token || in_template) return "";
  return absl::StrCat(
      "policy sadas: does nothing while a text has no ", sadas.open,
      ", nor have the model's vocabulary and chat template: it ",
      params.form == PolicyForm::kPlain ? "reads everything, as full does"
                                        : "drafts as triforce does");
}

}  // namespace

std::vector<std::string> PolicyWarnings(const Model& target,
                                        const PolicyParams& params) {
  std::vector<std::string> warnings;
  for (std::string warning :
       {UnheededSettings(target, params), NeverThinks(target, params)}) {
    if (!warning.empty()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

FastSteps PolicyParams::PlannedSteps() const {
  if (form != PolicyForm::kPlain) return {};
  if (policy == PolicyName::kSadas) return sadas.PlannedSteps();
  return policy == PolicyName::kSfi ? sfi.PlannedSteps() : FastSteps();
}

BlockDistributions PolicyParams::Distributions() const {
  const bool full = policy == PolicyName::kFull;
  if (form != PolicyForm::kVerified || (full && proposer == Proposer::kNone)) {
    return {};
  }
  const auto most = [](int64_t asked, int64_t ours) {
    return asked > 0 ? asked : asked == kAdaptive ? DraftLength::kMost : ours;
  };
  if (full) {
    const int64_t block = most(gamma1, kProposals);
    const bool by_model = proposer != Proposer::kNgram;
    return {.rows = 1 + block, .drafted = by_model ? block : 0};
  }
  const int64_t block = most(gamma2, kGamma2);
  return {.rows = 1 + block,
          .drafted = block,
          .draft_rows = 1 + most(gamma1, kGamma1)};
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

namespace {

absl::StatusOr<std::unique_ptr<Policy>> NewSadas(PolicyParts parts) {
  const Model& model = parts.session.model();
  ASSIGN_OR_RETURN(ThinkSchedule::Options options,
                   ThinkOptionsOf(model, parts.params.sadas));
  ThinkParts think = {.options = std::move(options),
                      .header = model.AssistantHeader()};
  if (parts.params.form == PolicyForm::kPlain) {
    return std::make_unique<SadasPlain>(std::move(parts), std::move(think));
  }
  return std::make_unique<SadasVerified>(std::move(parts), std::move(think));
}

absl::StatusOr<std::unique_ptr<Policy>> NewSfi(PolicyParts parts) {
  ASSIGN_OR_RETURN(SfiSchedule::Options options,
                   SfiOptionsOf(parts.session.model(), parts.params.sfi));
  if (parts.params.form == PolicyForm::kPlain) {
    return std::make_unique<SfiPlain>(std::move(parts), std::move(options));
  }
  return std::make_unique<SfiVerified>(std::move(parts), std::move(options));
}

std::unique_ptr<Policy> NewSpeed(PolicyParts parts) {
  if (parts.params.form == PolicyForm::kPlain) {
    return std::make_unique<SpeedPlain>(std::move(parts));
  }
  return std::make_unique<TriForcePolicy>(std::move(parts));
}

absl::StatusOr<std::unique_ptr<Policy>> NewPolicy(PolicyParts parts) {
  const PolicyParams& params = parts.params;
  // Only SADAS has a baseline other than the full policy: it alone forces
  // tokens.
  if (params.form == PolicyForm::kBaseline &&
      params.policy != PolicyName::kSadas) {
    return std::make_unique<FullPolicy>(std::move(parts));
  }
  switch (params.policy) {
    case PolicyName::kFull:
      return std::make_unique<FullPolicy>(std::move(parts));
    case PolicyName::kTriForce:
      return std::make_unique<TriForcePolicy>(std::move(parts));
    case PolicyName::kSadas:
      return NewSadas(std::move(parts));
    case PolicyName::kSfi:
      return NewSfi(std::move(parts));
    case PolicyName::kSpeed:
      return NewSpeed(std::move(parts));
  }
  return InternalError("internal", "policy: none of that name");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> Policy::Create(
    Session& session, const PolicyParams& params,
    std::unique_ptr<Session> draft_session) {
  ProposerParams proposer = {.kind = params.proposer,
                             .verify = params.verify,
                             .draft_layers = params.draft_layers};
  Session* const drafts = draft_session.get();
  if (drafts != nullptr) {
    ASSIGN_OR_RETURN(const DraftWindow window, DraftWindowOf(params));
    drafts->CancelWith(session);
    proposer.draft_session = drafts;
    proposer.draft_window = window;
  }
  absl::StatusOr<std::unique_ptr<Policy>> policy =
      NewPolicy({session, params, std::move(draft_session), proposer});
  if (policy.ok()) (*policy)->draft_session_ = drafts;
  return policy;
}

}  // namespace tiercel
