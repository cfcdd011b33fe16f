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
#include "kernels/token/law.h"
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
  kFull,      // the target itself checks what is proposed
  kTriForce,  // arXiv 2404.11912: first the target over its retrieval view
              // does, and the target checks what that has made of it
  kSadas,     // a window while the text thinks, everything while it answers
  kSfi,       // arXiv 2603.12038: chosen positions, everything now and then
  kSpeed,     // arXiv 2605.06105: above some layers the answer alone
};

std::string_view NameOf(PolicyName policy);  // "triforce"

// What a policy's view is for.
enum class PolicyForm {
  kVerified,  // it drafts: the output is the model's
  kPlain,     // it is all there is, as the policy's authors have it
  kBaseline,  // nothing: the model as it is, with what the policy forces of the
              // text; what the other two are compared with
};

// How a session makes its tokens; chosen when it is made.
struct PolicyParams {
  PolicyName policy = PolicyName::kFull;
  PolicyForm form = PolicyForm::kVerified;
  Proposer proposer = Proposer::kNone;
  VerifyMode verify = VerifyMode::kResidual;
  // Tokens at a time (arXiv 2404.11912, section 4): gamma1 of the proposer,
  // gamma2 of the retrieval view. 0: our choice; kAdaptive: by the acceptance.
  static constexpr int64_t kAdaptive = -1;
  int64_t gamma1 = 0;
  int64_t gamma2 = 0;
  // Our choices. Of proposals that the target itself checks: each costs a sweep
  // one more row, whether it holds or not. Of those that a view checks: a row
  // is much beside the little that a draft's pass takes. And of the view.
  static constexpr int64_t kProposals = 8;
  static constexpr int64_t kGamma1 = 4;
  static constexpr int64_t kGamma2 = 16;
  // What a check costs in drafted tokens, for adaptive lengths; 0: what `costs`
  // say, or 8 without them.
  double cost_ratio = 0;
  std::optional<Rates> costs = {};     // KeptRates::costs: they stay the same
  const Model* draft_model = nullptr;  // of Proposer::kSmall, which needs it
  // What the draft model sees of a text, as far as its context goes.
  DraftWindow draft_window = {};
  int draft_layers = 0;  // of Proposer::kSelf: the first so many; 0: all
  RetrievalSize view = {};
  SadasParams sadas = {};  // of PolicyName::kSadas
  SfiParams sfi = {};      // of PolicyName::kSfi
  SpeedParams speed = {};  // of PolicyName::kSpeed

  // Somebody drafts or steps over a retrieval view.
  bool NeedsView() const {
    if (form == PolicyForm::kBaseline) return false;
    if (policy == PolicyName::kSfi) return true;
    if (form == PolicyForm::kPlain) return false;
    return policy == PolicyName::kTriForce || policy == PolicyName::kSpeed ||
           proposer == Proposer::kSelf ||
           (policy == PolicyName::kSadas && sadas.gate != ThinkGate::kAlways);
  }
  // The view that its session must keep; absent: none. A proposer over a window
  // of it sees no chunks but the sinks.
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
  // How deep the rows of prompts go, or what drafts read; absent: all alike.
  std::optional<PromptDepth> Depth() const {
    if (policy != PolicyName::kSpeed || form == PolicyForm::kBaseline) {
      return std::nullopt;
    }
    return speed.depth;
  }
  // What a plan expects of the steps of a plain form; none are fast in others,
  // of which it says how long they take without drafts.
  FastSteps PlannedSteps() const;
  // What of its session's positions stays on the device: so many of the first,
  // and of the newest.
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
  // What its blocks are drawn from.
  BlockLaws Laws() const;
  // `options` with what its sessions need besides.
  SessionOptions OptionsFor(SessionOptions options) const {
    options.laws = Laws();
    options.retrieval = RetrievalView();
    options.depth = Depth();
    options.prompt_view = PromptView();
    options.kept_first = KeptFirst();
    options.kept_newest = KeptNewest();
    return options;
  }
  // What the rows of its session's prompts read.
  View PromptView() const {
    const bool plain = form == PolicyForm::kPlain;
    return plain && policy == PolicyName::kSadas ? PromptViewOf(sadas)
                                                 : View::Full();
  }
};

// Whether sessions of `target` may make their tokens so. Errors:
// invalid_argument, for more layers than the model has, a form that the policy
// lacks or that nobody can draft for; those of ThinkOptionsOf
// and of CheckDraftModel.
absl::Status CheckPolicy(const Model& target, const PolicyParams& params);

// What there is to say of sessions of `target` under `params`: of settings that
// were given and that its form does not heed; of SADAS where nothing says that
// the model thinks.
std::vector<std::string> PolicyWarnings(const Model& target,
                                        const PolicyParams& params);

// What the draft model of `params`, which has one, sees of a text. Errors:
// draft_context.
absl::StatusOr<DraftWindow> DraftWindowOf(const PolicyParams& params);
// The session of a draft model that sees so much.
SessionOptions DraftSessionOptions(const DraftWindow& window);
// Makes the draft model's session; null where no model drafts. It comes before
// the target's, whose plan counts what is taken. Errors: no_weights, those of
// DraftWindowOf and of Session::Create.
absl::StatusOr<std::unique_ptr<Session>> NewDraftSession(
    const PolicyParams& params);

// Makes the tokens of one session, in blocks: what each step reads, who
// proposes, who checks. Generations pull blocks from it, one after the other.
class Policy {
 public:
  // The session and the draft model outlive it. `params` have passed
  // CheckPolicy, `draft_session` is NewDraftSession's for them, and the session
  // keeps their RetrievalView. Errors: those of DraftWindowOf.
  static absl::StatusOr<std::unique_ptr<Policy>> Create(
      Session& session, const PolicyParams& params,
      std::unique_ptr<Session> draft_session);
  virtual ~Policy() = default;

  // A generation begins, whose tokens follow the session's and are drawn by
  // `law` and `seed`. Errors: those of Session::CatchUpForDrafts.
  virtual absl::Status Begin(const LawParams& law, uint64_t seed) = 0;
  // The tokens that follow, one at least; the session holds them then. Errors:
  // those of the session, and of the draft model's.
  virtual absl::StatusOr<VerifiedBlock> NextBlock() = 0;
  // What the generation that began last has done so far.
  virtual RoundsReport report() const = 0;
  // Leaves the workspace of a model that drafts to others of its sessions.
  void Rest() {
    if (draft_session_ != nullptr) draft_session_->Rest();
  }
  // The steps of the generation that began last, for texts that are known; null
  // but in a plain form, where a row is not the model's own.
  virtual StepTarget* steps() { return nullptr; }

 private:
  Session* draft_session_ = nullptr;  // null: no model drafts
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_POLICY_H_
