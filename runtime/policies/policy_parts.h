#ifndef TIERCEL_RUNTIME_POLICIES_POLICY_PARTS_H_
#define TIERCEL_RUNTIME_POLICIES_POLICY_PARTS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "drafts/draft_length.h"
#include "drafts/drafter.h"
#include "drafts/verifying_drafter.h"
#include "kernels/token/distribution.h"
#include "runtime/drafting/draft_costs.h"
#include "runtime/drafting/model_target.h"
#include "runtime/drafting/proposer.h"
#include "runtime/drafting/rounds.h"
#include "runtime/policies/policy.h"
#include "runtime/session/session.h"

namespace tiercel {

// The parts of every policy: its session, its parameters and its proposer.
struct PolicyParts {
  Session& session;
  const PolicyParams params;
  std::unique_ptr<Session> draft_session;  // null: no draft model
  const ProposerParams proposer;

  // The number of tokens to draft before they are checked: `asked`, which takes
  // the ratio of `costs` if it wants one; else `ours`.
  DraftLength Length(const std::optional<DraftLength>& asked, int64_t ours,
                     absl::FunctionRef<double(const DraftCosts&)> costs) const;

  // The most branches of a block: `params.branches`, decided by costs if it is
  // adaptive.
  int Branches() const;

  // The target over all of the session's KV, whose `distribution` is the one
  // promised to the user; and the one over its retrieval view, which drafts.
  ModelTarget OverAll(const DistributionParams& distribution) const;
  ModelTarget OverView(const DistributionParams& distribution) const;

  // Options of the level that drafts over the retrieval view and checks the
  // proposals of `inner`; null: it drafts token by token.
  VerifyingDrafter::Options ViewDrafts(Drafter* inner) const;
  // Options of rounds in which a sweep over the whole text checks the drafts of
  // `drafter`, which drafts over that view.
  Rounds::Options SweepsOfViewDrafts(uint64_t seed, Drafter* drafter) const;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_POLICY_PARTS_H_
