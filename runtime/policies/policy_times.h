#ifndef TIERCEL_RUNTIME_POLICIES_POLICY_TIMES_H_
#define TIERCEL_RUNTIME_POLICIES_POLICY_TIMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/machine/machine.h"
#include "runtime/plan/rates.h"
#include "runtime/plan/session_plan.h"
#include "runtime/plan/tier_plan.h"
#include "runtime/policies/policy.h"

namespace tiercel {

// The share of a view's drafts that is taken to hold before any have been
// checked. TriForce's drafts over a novel held in 92 % of the places at 7,000
// tokens, and in 82 % at 28,000 (doc/measured.md).
inline constexpr double kExpectedAcceptance = 0.9;

// Predicted seconds from one token to the next behind a text.
struct PolicyTimes {
  double policy_s = 0;  // if kExpectedAcceptance of the drafts hold
  double full_s = 0;    // without a policy, on the same device
};

// The times of sessions under `params`, behind a text of `length` tokens. Each
// rank has its own site and plan; `link` and `rates` are as for Predict. Absent
// for the policy full and for baselines.
std::optional<PolicyTimes> TimesOf(const PolicyParams& params,
                                   const std::vector<SessionSite>& sites,
                                   const std::vector<TierPlan>& plans,
                                   const std::optional<LinkRate>& link,
                                   const Rates& rates, int64_t length);

// A warning if the policy is slower here than none; "" if it is not.
std::string SlowerThanFull(const PolicyParams& params,
                           const std::optional<PolicyTimes>& times);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICIES_POLICY_TIMES_H_
