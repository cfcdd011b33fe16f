#include "runtime/policies/triforce/triforce.h"

#include "lib/status/status_macros.h"

namespace tiercel {
absl::Status TriForcePolicy::Begin(const DistributionParams& distribution,
                                   uint64_t seed) {
  proposer_.emplace(parts_.session, distribution, parts_.proposer);
  middle_.emplace(parts_.OverView(distribution));
  drafter_.emplace(*middle_, parts_.ViewDrafts(proposer_->drafter()));
  target_.emplace(parts_.OverAll(distribution));
  rounds_.emplace(parts_.session, *target_,
                  parts_.SweepsOfViewDrafts(seed, &*drafter_));
  return rounds_->Begin();
}

absl::Status TriForceKind::Read(const PolicyRequest& request,
                                PolicyParams* params) const {
  RETURN_IF_ERROR(PolicyKind::Read(request, params));
  // Single tokens are selected by their keys, not by digests.
  if (params->view.chunk == 1) params->view.selection = kDraftSelection;
  return absl::OkStatus();
}

}  // namespace tiercel
