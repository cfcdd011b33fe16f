#include "runtime/policies/full/full.h"

namespace tiercel {
absl::Status FullPolicy::Begin(const DistributionParams& distribution,
                               uint64_t seed) {
  const PolicyParams& params = parts_.params;
  proposer_.emplace(parts_.session, distribution, parts_.proposer);
  target_.emplace(parts_.OverAll(distribution));
  rounds_.emplace(
      parts_.session, *target_,
      Rounds::Options{
          .seed = seed,
          .verify = params.verify,
          .drafter = proposer_->drafter(),
          .length = parts_.Length(params.gamma1, PolicyParams::kProposals,
                                  &DraftCosts::SweepInProposals),
          .over_view = params.RetrievalView().has_value()});
  return rounds_->Begin();
}

absl::Status FullKind::Read(const PolicyRequest& request,
                            PolicyParams* params) const {
  PolicyRequest sizes = request;
  sizes.budget = 0;  // its view is the sinks alone
  return PolicyKind::Read(sizes, params);
}

std::optional<RetrievalSize> FullKind::RetrievalView(
    const PolicyParams& params) const {
  if (params.proposer != Proposer::kSelf) return std::nullopt;
  RetrievalSize size = params.view;
  size.budget = size.sink;
  return size;
}

BlockDistributions FullKind::Distributions(const PolicyParams& params) const {
  if (params.proposer == Proposer::kNone) return {};
  const int64_t block = MostTokens(params.gamma1, PolicyParams::kProposals);
  const bool by_model = params.proposer != Proposer::kNgram;
  return {.rows = 1 + block, .drafted = by_model ? block : 0};
}

}  // namespace tiercel
