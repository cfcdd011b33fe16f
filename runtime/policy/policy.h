#ifndef TIERCEL_RUNTIME_POLICY_POLICY_H_
#define TIERCEL_RUNTIME_POLICY_POLICY_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/verify.h"
#include "kernels/token/distribution.h"
#include "offload/view/retrieval.h"
#include "runtime/drafting/proposer.h"
#include "runtime/drafting/rounds.h"
#include "runtime/drafting/small_target.h"
#include "runtime/drafting/step_target.h"
#include "runtime/model/model.h"
#include "runtime/policy/sadas_params.h"
#include "runtime/policy/sfi_params.h"
#include "runtime/policy/speed_params.h"
#include "runtime/predict/prediction.h"
#include "runtime/predict/rates.h"
#include "runtime/sequence/session.h"

namespace tiercel {

enum class PolicyName {
  kFull,      // the target itself checks the proposed tokens
  kTriForce,  // arXiv 2404.11912: a retrieval view checks them first
  kSadas,     // a window while the text thinks, everything while it answers
  kSfi,       // arXiv 2603.12038: selected positions, everything now and then
  kSpeed,     // arXiv 2605.06105: above some layers, the answer alone
};

std::string_view NameOf(PolicyName policy);  // "triforce"

// The use that a policy makes of its view.
enum class PolicyForm {
  kVerified,  // the view drafts, the model checks: the text is the model's own
  kPlain,     // the view is all that its rows read, as in the paper
  kBaseline,  // no view: the model as it is, with the tokens that the policy
              // forces; the other two forms are compared with it
};

// The way in which a session makes its tokens; it is chosen when the session is
// made.
struct PolicyParams {
  PolicyName policy = PolicyName::kFull;
  PolicyForm form = PolicyForm::kVerified;
  Proposer proposer = Proposer::kNone;
  VerifyMode verify = VerifyMode::kResidual;
  // Tokens drafted at a time (arXiv 2404.11912, section 4): gamma1 by the
  // proposer, gamma2 by the retrieval view. 0 takes the default below;
  // kAdaptive follows the acceptance.
  static constexpr int64_t kAdaptive = -1;
  int64_t gamma1 = 0;
  int64_t gamma2 = 0;
  // Our defaults: kProposals for proposals that the target itself checks, each
  // of which costs a sweep one more row, whether it holds or not; kGamma1 for
  // those that a view checks, where a row is expensive beside a draft's short
  // pass; kGamma2 for the view's own drafts.
  static constexpr int64_t kProposals = 8;
  static constexpr int64_t kGamma1 = 4;
  static constexpr int64_t kGamma2 = 16;
  // The cost of a check in drafted tokens, for adaptive lengths. 0 takes it
  // from `costs`, or 8 without them.
  double cost_ratio = 0;
  std::optional<Rates> costs = {};     // KeptRates::costs: they stay the same
  const Model* draft_model = nullptr;  // for Proposer::kSmall, which needs it
  // The part of a text that the draft model sees, as far as its context goes.
  DraftWindow draft_window = {};
  int draft_layers = 0;  // for kSelf, which runs the first so many; 0: all
  RetrievalSize view = {};
  SadasParams sadas = {};  // for PolicyName::kSadas
  SfiParams sfi = {};      // for PolicyName::kSfi
  SpeedParams speed = {};  // for PolicyName::kSpeed

  // Returns true if a drafter or a step reads a retrieval view.
  bool NeedsView() const {
    if (form == PolicyForm::kBaseline) return false;
    if (policy == PolicyName::kSfi) return true;
    if (form == PolicyForm::kPlain) return false;
    return policy == PolicyName::kTriForce || policy == PolicyName::kSpeed ||
           proposer == Proposer::kSelf ||
           (policy == PolicyName::kSadas && sadas.gate != ThinkGate::kAlways);
  }
  // The view that its session must keep; absent: none. If only a proposer reads
  // a window of the view, the view holds no chunks but the sinks.
  std::optional<RetrievalSize> RetrievalView() const {
    if (!NeedsView()) return std::nullopt;
    if (policy == PolicyName::kSfi) {
      return sfi.View(/*plain=*/form == PolicyForm::kPlain);
    }
    RetrievalSize size = view;
    if (policy == PolicyName::kFull) size.budget = size.sink;
    if (policy == PolicyName::kSpeed) {
      size.sink = std::max(size.sink, speed.depth.anchor);
    }
    return size;
  }
  // The number of layers that the rows of prompts pass, or that drafts read;
  // absent: all rows are alike.
  std::optional<PromptDepth> Depth() const {
    if (policy != PolicyName::kSpeed || form == PolicyForm::kBaseline) {
      return std::nullopt;
    }
    return speed.depth;
  }
  // The fast steps that a plan expects of a plain form. Other forms have none:
  // their plan says how long steps take without drafts.
  FastSteps PlannedSteps() const;
  // The positions of its session that stay on the device: the first KeptFirst()
  // and the newest KeptNewest().
  int64_t KeptFirst() const {
    return policy == PolicyName::kSadas && form != PolicyForm::kBaseline
               ? sadas.sink
               : 0;
  }
  int64_t KeptNewest() const {
    return policy == PolicyName::kSadas && form != PolicyForm::kBaseline
               ? sadas.window
               : 0;
  }
  // The distributions that its blocks are drawn from.
  BlockDistributions Distributions() const;
  // `options` with the settings that its sessions need besides.
  SessionOptions OptionsFor(SessionOptions options) const {
    options.distributions = Distributions();
    options.retrieval = RetrievalView();
    options.depth = Depth();
    options.prompt_view = PromptView();
    options.kept_first = KeptFirst();
    options.kept_newest = KeptNewest();
    return options;
  }
  // The view that the rows of its session's prompts read.
  View PromptView() const {
    const bool plain = form == PolicyForm::kPlain;
    return plain && policy == PolicyName::kSadas ? PromptViewOf(sadas)
                                                 : View::Full();
  }
};

// Checks that sessions of `target` can use `params`. Errors: invalid_argument,
// for more layers than the model has, for a form that the policy lacks, and for
// a proposer in a form without drafts; those of ThinkOptionsOf and of
// CheckDraftModel.
absl::Status CheckPolicy(const Model& target, const PolicyParams& params);

// Returns warnings about sessions of `target` under `params`: about given
// settings that have no effect in its form, and about SADAS where nothing says
// that the model thinks.
std::vector<std::string> PolicyWarnings(const Model& target,
                                        const PolicyParams& params);

// The part of a text that the draft model of `params`, which has one, sees.
// Errors: draft_context.
absl::StatusOr<DraftWindow> DraftWindowOf(const PolicyParams& params);
// The options for the session of a draft model that sees `window`.
SessionOptions DraftSessionOptions(const DraftWindow& window);
// Makes the draft model's session; null if no model drafts. Make it before the
// target's session, whose plan counts the memory that is taken. Errors:
// no_weights, those of DraftWindowOf and of Session::Create.
absl::StatusOr<std::unique_ptr<Session>> NewDraftSession(
    const PolicyParams& params);

// Makes the tokens of one session, in blocks. A policy decides what each step
// reads, which drafter proposes and which target checks. A generation pulls one
// block after the other from it.
class Policy {
 public:
  // The session and the draft model outlive it. `params` have passed
  // CheckPolicy, `draft_session` is NewDraftSession's for them, and the session
  // keeps their RetrievalView. Errors: those of DraftWindowOf.
  static absl::StatusOr<std::unique_ptr<Policy>> Create(
      Session& session, const PolicyParams& params,
      std::unique_ptr<Session> draft_session);
  virtual ~Policy() = default;

  // Begins a generation whose tokens follow the session's and are drawn by
  // `distribution` and `seed`. Errors: those of Session::CatchUpForDrafts.
  virtual absl::Status Begin(const DistributionParams& distribution,
                             uint64_t seed) = 0;
  // Returns the tokens that follow, at least one; the session then holds them.
  // Errors: those of the session, and of the draft model's.
  virtual absl::StatusOr<VerifiedBlock> NextBlock() = 0;
  // The report of the generation that began last, so far.
  virtual RoundsReport report() const = 0;
  // Frees the workspace of the draft model for other sessions of that model.
  void Rest() {
    if (draft_session_ != nullptr) draft_session_->Rest();
  }
  // The steps of the generation that began last, which score known texts. Null
  // except in a plain form: only there do rows differ from the model's own.
  virtual StepTarget* steps() { return nullptr; }

 private:
  Session* draft_session_ = nullptr;  // null: no model drafts
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_POLICY_H_
