#include "runtime/policy/policy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"
#include "runtime/model/draft_model.h"
#include "runtime/policy/full.h"
#include "runtime/policy/policy_parts.h"
#include "runtime/policy/triforce.h"

namespace tiercel {
namespace {

// What of a session and its model a policy needs.
absl::Status Check(const Session& session, const PolicyParams& params) {
  if (absl::Status s = CheckPolicy(session.model().config, params); !s.ok()) {
    return s;
  }
  if (params.NeedsView() && session.retrieval() == nullptr) {
    return UsageError("no_retrieval_view",
                      "drafts over a view need a session that keeps one");
  }
  return params.proposer == Proposer::kSmall
             ? CheckDraftModel(session.model(), *params.draft_model)
             : absl::OkStatus();
}

}  // namespace

absl::Status CheckPolicy(const ModelConfig& config,
                         const PolicyParams& params) {
  if (params.draft_layers < 0 || params.draft_layers > config.layers) {
    return UsageError("invalid_argument",
                      absl::StrCat("draft_layers: got ", params.draft_layers,
                                   ", need 0 to the model's ", config.layers));
  }
  if (params.proposer == Proposer::kSmall && params.draft_model == nullptr) {
    return UsageError("no_draft_model",
                      "a small model is to draft, but none was given");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Policy>> Policy::Create(
    Session& session, const PolicyParams& params) {
  if (absl::Status s = Check(session, params); !s.ok()) return s;
  ProposerParams proposer = {.kind = params.proposer,
                             .verify = params.verify,
                             .draft_layers = params.draft_layers};
  std::unique_ptr<Session> draft_session;
  if (params.proposer == Proposer::kSmall) {
    const Model& model = *params.draft_model;
    const absl::StatusOr<DraftWindow> window =
        params.draft_window.Within(model.config.context);
    if (!window.ok()) return window.status();
    absl::StatusOr<std::unique_ptr<Session>> made =
        Session::Create(model, {.context = window->Context()});
    if (!made.ok()) return Annotate(made.status(), "draft model");
    draft_session = *std::move(made);
    draft_session->CancelWith(session);
    proposer.draft_session = draft_session.get();
    proposer.draft_window = *window;
  }
  PolicyParts parts = {session, params, std::move(draft_session), proposer};
  switch (params.policy) {
    case PolicyName::kFull:
      return std::make_unique<FullPolicy>(std::move(parts));
    case PolicyName::kTriForce:
      return std::make_unique<TriForcePolicy>(std::move(parts));
  }
  return InternalError("internal", "policy: none of that name");
}

}  // namespace tiercel
