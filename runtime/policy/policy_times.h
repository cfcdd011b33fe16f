#ifndef TIERCEL_RUNTIME_POLICY_POLICY_TIMES_H_
#define TIERCEL_RUNTIME_POLICY_POLICY_TIMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "offload/plan/tier_plan.h"
#include "runtime/machine/machine.h"
#include "runtime/policy/policy.h"
#include "runtime/predict/rates.h"
#include "runtime/predict/session_plan.h"

namespace tiercel {

// What of the tokens that a view drafts is taken to hold, where nothing was
// drafted yet: TriForce's drafts over novels held as often (README).
inline constexpr double kExpectedAcceptance = 0.9;

// Seconds from a token to the next behind a text, as they are foreseen.
struct PolicyTimes {
  double policy_s = 0;  // of drafts kExpectedAcceptance hold
  double full_s = 0;    // without a policy, on the same device
};

// The times of sessions under `params`, behind a text of `length` tokens. Each
// rank has its site, and its plan; `link` and `rates` are as Predict takes
// them. Absent for PolicyName::kFull and for baselines.
std::optional<PolicyTimes> TimesOf(const PolicyParams& params,
                                   const std::vector<SessionSite>& sites,
                                   const std::vector<TierPlan>& plans,
                                   const std::optional<LinkRate>& link,
                                   const Rates& rates, int64_t length);

// What there is to say of a policy that is slower here than none; "": nothing.
std::string SlowerThanFull(const PolicyParams& params,
                           const std::optional<PolicyTimes>& times);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_POLICY_POLICY_TIMES_H_
