#ifndef TIERCEL_RUNTIME_POLICIES_POLICY_H_
#define TIERCEL_RUNTIME_POLICIES_POLICY_H_

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "drafts/draft_length.h"
#include "drafts/verify.h"
#include "kernels/token/distribution.h"
#include "offload/retrieval/retrieval.h"
#include "runtime/drafting/draft_window.h"
#include "runtime/drafting/proposer.h"
#include "runtime/drafting/rounds.h"
#include "runtime/drafting/step_target.h"
#include "runtime/model/model.h"
#include "runtime/plan/prediction.h"
#include "runtime/plan/rates.h"
#include "runtime/session/session.h"

namespace tiercel {

class PolicyKind;

// The policies that a user can name, in the order in which they are listed.
std::span<const PolicyKind* const> Policies();
// The policy of that name; null: there is none.
const PolicyKind* PolicyNamed(std::string_view name);

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
  const PolicyKind* policy = PolicyNamed("full");
  PolicyForm form = PolicyForm::kVerified;
  Proposer proposer = Proposer::kNone;
  VerifyMode verify = VerifyMode::kResidual;
  // Tokens drafted at a time (arXiv 2404.11912, section 4): gamma1 by the
  // proposer, gamma2 by the retrieval view; absent: the defaults below.
  std::optional<DraftLength> gamma1 = {};
  std::optional<DraftLength> gamma2 = {};
  // Our defaults: kProposals for proposals that the target itself checks, each
  // of which costs a sweep one more row, whether it holds or not; kGamma1 for
  // those that a view checks, where a row is expensive beside a draft's short
  // pass; kGamma2 for the view's own drafts.
  static constexpr int64_t kProposals = 8;
  static constexpr int64_t kGamma1 = 4;
  static constexpr int64_t kGamma2 = 16;
  // The most second choices for tokens of a block of the view's drafts, which
  // the same sweep checks (VerifyingDrafter). kAdaptive: kUsualBranches if a
  // sweep costs kBranchRatio passes over the view or more, else none. Below
  // about 40 they do not pay for the passes that draft them (doc/measured.md).
  int branches = 0;
  static constexpr int kAdaptive = -1;
  static constexpr int kMostBranches = 16;
  static constexpr int kUsualBranches = 4;
  static constexpr double kBranchRatio = 64;
  // The cost of a sweep for kAdaptive; absent: it follows from `costs`.
  std::optional<double> cost_ratio = {};
  // The view drafts the next block while a sweep checks one (DraftAhead).
  bool draft_ahead = false;
  // The rates from which adaptive lengths take the ratio of costs, if none is
  // given (KeptRates::costs). They do not change during a generation.
  std::optional<Rates> costs = {};
  const Model* draft_model = nullptr;  // for Proposer::kSmall, which needs it
  // The part of a text that the draft model sees, as far as its context goes.
  DraftWindow draft_window = {};
  int draft_layers = 0;  // for kSelf, which runs the first so many; 0: all
  RetrievalSize view = {};
  // The settings that the policy alone knows, in a type T of its folder. Own<T>
  // returns them, or T's defaults if there are none. The Own<T> that returns
  // them to be changed drops settings of any other type, which are those of
  // a policy that was named before.
  std::any own = {};

  template <typename T>
  const T& Own() const {
    static const T kDefaults = {};
    const T* const settings = std::any_cast<T>(&own);
    return settings != nullptr ? *settings : kDefaults;
  }
  template <typename T>
  T& Own() {
    if (std::any_cast<T>(&own) == nullptr) own = T();
    return *std::any_cast<T>(&own);
  }

  // The most branches that a block may have.
  int MostBranches() const {
    return branches == kAdaptive ? kUsualBranches : branches;
  }
  // The view that its session must keep; absent: none.
  std::optional<RetrievalSize> RetrievalView() const;
  // The fast steps that a plan expects of a plain form. Other forms have none:
  // their plan says how long steps take without drafts.
  FastSteps PlannedSteps() const;
  // `options` with the settings that its sessions of `target` need besides.
  SessionOptions OptionsFor(const Model& target, SessionOptions options) const;
};

// Checks that sessions of `target` can use `params`. Errors: invalid_argument,
// for more layers than the model has, for a form that the policy lacks, and for
// a proposer in a form without drafts; those of PolicyKind::Check and of
// CheckDraftModel.
absl::Status CheckPolicy(const Model& target, const PolicyParams& params);

// Returns warnings about sessions of `target` under `params`: about given
// settings that have no effect in its form, and those of PolicyKind::Warning.
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
  // Frees the workspaces of its own, and the draft model's, for other sessions.
  virtual void Rest() {
    if (draft_session_ != nullptr) draft_session_->runner().Rest();
  }
  // The steps of the generation that began last, which score known texts. Null
  // except in a plain form: only there do rows differ from the model's own.
  virtual StepTarget* steps() { return nullptr; }

 private:
  Session* draft_session_ = nullptr;  // null: no model drafts
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_POLICY_H_
