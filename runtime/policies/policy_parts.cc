#include "runtime/policies/policy_parts.h"

#include <cmath>
#include <memory>
#include <optional>

#include "runtime/drafting/retrieval_kv.h"
#include "runtime/drafting/session_kv.h"

namespace tiercel {
namespace {

// The cost ratio of adaptive lengths where nothing has been measured.
constexpr double kCostRatio = 8;

// Rounds to a power of two: the rates of two machines of one kind differ so
// little that they hardly ever change a length, and with it a text.
double Rounded(double ratio) { return std::exp2(std::round(std::log2(ratio))); }

}  // namespace

DraftLength PolicyParts::Length(
    int64_t asked, int64_t ours,
    absl::FunctionRef<double(const DraftCosts&)> costs) const {
  if (asked > 0) return DraftLength::Fixed(asked);
  if (asked != PolicyParams::kAdaptive) return DraftLength::Fixed(ours);
  if (params.cost_ratio > 0) return DraftLength::Adaptive(params.cost_ratio);
  if (!params.costs.has_value()) return DraftLength::Adaptive(kCostRatio);
  return DraftLength::Adaptive(
      Rounded(costs(DraftCosts(session, proposer, *params.costs))));
}

ModelTarget PolicyParts::OverAll(const DistributionParams& distribution) const {
  return {session, distribution, std::make_unique<SessionKv>(session)};
}

ModelTarget PolicyParts::OverView(
    const DistributionParams& distribution) const {
  return {session, DraftDistribution(distribution),
          std::make_unique<RetrievalKv>(session, RetrievalKv::Options{})};
}

VerifyingDrafter::Options PolicyParts::ViewDrafts(Drafter* inner) const {
  return {.name = "retrieval",
          .mode = params.verify,
          .inner = inner,
          .gamma1 = Length(params.gamma1, PolicyParams::kGamma1,
                           &DraftCosts::ViewPassInProposals)};
}

Rounds::Options PolicyParts::SweepsOfViewDrafts(uint64_t seed,
                                                Drafter* drafter) const {
  return {.seed = seed,
          .verify = params.verify,
          .drafter = drafter,
          .length = Length(params.gamma2, PolicyParams::kGamma2,
                           &DraftCosts::SweepInViewPasses),
          .over_view = true};
}

}  // namespace tiercel
