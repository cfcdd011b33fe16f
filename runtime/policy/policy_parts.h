#ifndef TIERCEL_RUNTIME_POLICY_POLICY_PARTS_H_
#define TIERCEL_RUNTIME_POLICY_POLICY_PARTS_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "drafts/draft_length.h"
#include "drafts/drafter.h"
#include "drafts/verifying_drafter.h"
#include "runtime/drafting/draft_costs.h"
#include "runtime/drafting/proposer.h"
#include "runtime/drafting/rounds.h"
#include "runtime/policy/policy.h"
#include "runtime/sequence/session.h"

namespace tiercel {

// What every policy is made of: whom it serves, what it was asked for, and who
// proposes.
struct PolicyParts {
  Session& session;
  const PolicyParams params;
  std::unique_ptr<Session> draft_session;  // null: no draft model
  const ProposerParams proposer;

  // How many tokens to draft before they are checked: what was asked for, or
  // `ours`; where that adapts, by what the check costs, `costs`.
  DraftLength Length(int64_t asked, int64_t ours,
                     absl::FunctionRef<double(const DraftCosts&)> costs) const;

  // The level that drafts over the retrieval view, from what `inner` proposes;
  // null: token by token.
  VerifyingDrafter::Options ViewDrafts(Drafter* inner) const;
  // Rounds in which the whole text checks what `drafter`, over that view, has
  // drafted.
  Rounds::Options SweepsOfViewDrafts(uint64_t seed, Drafter* drafter) const;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_POLICY_PARTS_H_
