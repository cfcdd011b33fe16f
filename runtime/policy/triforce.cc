#include "runtime/policy/triforce.h"

namespace tiercel {
absl::Status TriForcePolicy::Begin(const LawParams& law, uint64_t seed) {
  const PolicyParams& params = parts_.params;
  proposer_.emplace(parts_.session, law, parts_.proposer);
  middle_.emplace(parts_.session,
                  RetrievalTarget::Options{.law = DraftLaw(law)});
  drafter_.emplace(*middle_, VerifyingDrafter::Options{
                                 .name = "retrieval",
                                 .mode = params.verify,
                                 .inner = proposer_->drafter(),
                                 .gamma1 = parts_.Length(
                                     params.gamma1, PolicyParams::kGamma1,
                                     &DraftCosts::ViewPassInProposals)});
  target_.emplace(parts_.session, law);
  rounds_.emplace(parts_.session, *target_,
                  Rounds::Options{.seed = seed,
                                  .verify = params.verify,
                                  .drafter = &*drafter_,
                                  .length = parts_.Length(
                                      params.gamma2, PolicyParams::kGamma2,
                                      &DraftCosts::SweepInViewPasses),
                                  .over_view = true});
  return rounds_->Begin();
}

}  // namespace tiercel
