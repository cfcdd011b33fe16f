#include "runtime/policies/policy_parts.h"

#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/drafting/retrieval_kv.h"
#include "runtime/drafting/session_kv.h"

namespace tiercel {
namespace {

// Rounds to a power of two: the rates of two machines of one kind differ so
// little that they hardly ever change a length, and with it a text.
double Rounded(double ratio) { return std::exp2(std::round(std::log2(ratio))); }

}  // namespace

DraftLength PolicyParts::Length(
    const std::optional<DraftLength>& asked, int64_t ours,
    absl::FunctionRef<double(const DraftCosts&)> costs) const {
  DraftLength length = asked.value_or(DraftLength::Fixed(ours));
  if (length.wants_ratio() && params.costs.has_value()) {
    length.TakeRatio(
        Rounded(costs(DraftCosts(session, proposer, *params.costs))));
  }
  return length;
}

int PolicyParts::Branches() const {
  if (params.branches != PolicyParams::kAdaptive) return params.branches;
  const double ratio =
      Length(DraftLength::Adaptive(params.cost_ratio), PolicyParams::kGamma2,
             &DraftCosts::SweepInViewPasses)
          .cost_ratio();
  return ratio < PolicyParams::kBranchRatio ? 0 : PolicyParams::kUsualBranches;
}

ModelTarget PolicyParts::OverAll(const DistributionParams& distribution) const {
  return {session, distribution, std::make_unique<SessionKv>(session)};
}

ModelTarget PolicyParts::OverView(
    const DistributionParams& distribution) const {
  DistributionParams drafts = DraftDistribution(distribution);
  drafts.keeps_second = Branches() > 0;
  return {session, std::move(drafts),
          std::make_unique<RetrievalKv>(session, RetrievalKv::Options{})};
}

VerifyingDrafter::Options PolicyParts::ViewDrafts(Drafter* inner) const {
  return {.name = "retrieval",
          .mode = params.verify,
          .inner = inner,
          .gamma1 = Length(params.gamma1, PolicyParams::kGamma1,
                           &DraftCosts::ViewPassInProposals),
          .branches = Branches()};
}

Rounds::Options PolicyParts::SweepsOfViewDrafts(uint64_t seed,
                                                Drafter* drafter) const {
  return {.seed = seed,
          .verify = params.verify,
          .drafter = drafter,
          .length = Length(params.gamma2, PolicyParams::kGamma2,
                           &DraftCosts::SweepInViewPasses),
          .over_view = true,
          .ahead = params.draft_ahead};
}

}  // namespace tiercel
