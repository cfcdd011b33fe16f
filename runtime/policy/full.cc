#include "runtime/policy/full.h"

namespace tiercel {
absl::Status FullPolicy::Begin(const DistributionParams& distribution,
                               uint64_t seed) {
  const PolicyParams& params = parts_.params;
  proposer_.emplace(parts_.session, distribution, parts_.proposer);
  target_.emplace(parts_.session, distribution);
  rounds_.emplace(parts_.session, *target_,
                  Rounds::Options{.seed = seed,
                                  .verify = params.verify,
                                  .drafter = proposer_->drafter(),
                                  .length = parts_.Length(
                                      params.gamma1, PolicyParams::kProposals,
                                      &DraftCosts::SweepInProposals),
                                  .over_view = params.NeedsView()});
  return rounds_->Begin();
}

}  // namespace tiercel
