#include "runtime/policy/triforce.h"

namespace tiercel {
absl::Status TriForcePolicy::Begin(const DistributionParams& distribution,
                                   uint64_t seed) {
  proposer_.emplace(parts_.session, distribution, parts_.proposer);
  middle_.emplace(parts_.session,
                  RetrievalTarget::Options{
                      .distribution = DraftDistribution(distribution)});
  drafter_.emplace(*middle_, parts_.ViewDrafts(proposer_->drafter()));
  target_.emplace(parts_.session, distribution);
  rounds_.emplace(parts_.session, *target_,
                  parts_.SweepsOfViewDrafts(seed, &*drafter_));
  return rounds_->Begin();
}

}  // namespace tiercel
