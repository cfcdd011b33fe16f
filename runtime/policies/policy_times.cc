#include "runtime/policies/policy_times.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "runtime/plan/prediction.h"
#include "runtime/policies/policy_kind.h"

namespace tiercel {
namespace {

// Expected tokens from a sweep that checks so many drafts, its own token
// included.
double TokensOfASweep(int64_t drafts) {
  return (1 - std::pow(kExpectedAcceptance, static_cast<double>(drafts + 1))) /
         (1 - kExpectedAcceptance);
}

}  // namespace

std::optional<PolicyTimes> TimesOf(const PolicyParams& params,
                                   const std::vector<SessionSite>& sites,
                                   const std::vector<TierPlan>& plans,
                                   const std::optional<LinkRate>& link,
                                   const Rates& rates, int64_t length) {
  if (!params.policy->HasTimes() || params.form == PolicyForm::kBaseline) {
    return std::nullopt;
  }
  std::vector<SessionSite> full_sites;
  std::vector<TierPlan> full_plans;
  double draft_s = 0;
  for (size_t i = 0; i < sites.size(); ++i) {
    full_sites.push_back(sites[i].WithoutPolicy());
    full_plans.push_back(full_sites.back().PlanFor(plans[i].context));
    if (params.form == PolicyForm::kPlain) continue;
    draft_s = std::max(
        draft_s, params.policy->DraftSeconds(
                     params, sites[i], RatesOfRanks(sites[i], rates), length));
  }
  const Work step = {
      .cached = length, .prompt = length, .fast = params.PlannedSteps()};
  PolicyTimes times;
  times.full_s = PredictRanks(full_sites, full_plans, link, rates,
                              {.cached = length, .prompt = length})
                     .tbt_s;
  if (params.form == PolicyForm::kPlain) {
    times.policy_s = PredictRanks(sites, plans, link, rates, step).tbt_s;
    return times;
  }
  const int64_t drafts = DraftBlockTokens(params);
  const double sweep_s =
      PredictRanks(sites, plans, link, rates,
                   {.cached = length, .prompt = length + drafts + 1})
          .ttft_s;
  times.policy_s = (static_cast<double>(drafts) * draft_s + sweep_s) /
                   TokensOfASweep(drafts);
  return times;
}

std::string SlowerThanFull(const PolicyParams& params,
                           const std::optional<PolicyTimes>& times) {
  constexpr double kClearly = 1.05;  // rates are no more accurate
  if (!times.has_value() || times->policy_s <= kClearly * times->full_s) {
    return "";
  }
  return absl::StrFormat(
      "policy %s: slower here than full, by the plan: %.2f ms a token%s, full "
      "%.2f",
      std::string(params.policy->name()), 1e3 * times->policy_s,
      params.form == PolicyForm::kPlain ? "" : " where nine of ten drafts hold",
      1e3 * times->full_s);
}

}  // namespace tiercel
