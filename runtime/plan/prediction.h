#ifndef TIERCEL_RUNTIME_PLAN_PREDICTION_H_
#define TIERCEL_RUNTIME_PLAN_PREDICTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/machine/machine.h"
#include "runtime/plan/rates.h"
#include "runtime/plan/session_plan.h"
#include "runtime/plan/tier_plan.h"

namespace tiercel {

// Steps that read at most `positions` positions, all of them on the device.
struct FastSteps {
  int64_t positions = 0;
  double share = 0;  // a fraction of all steps
};

// The work that a session is asked to do, in tokens.
struct Work {
  int64_t cached = 0;     // tokens of the prompt whose KV exists
  int64_t prompt = 0;     // tokens, cached ones included
  int64_t generated = 0;  // tokens after the prompt
  FastSteps fast = {};    // the other steps read everything
};

struct Prediction {
  double ttft_s = 0;  // time to first token
  // Time between tokens half way through the generation: the mean of fast and
  // other steps.
  double tbt_s = 0;
  // Bytes of KV that cross to one rank's device for a token there, the mean of
  // fast and other steps; of several ranks the largest.
  double swept_bytes = 0;
  MemoryUse memory;
};

// Converts `rates`, of a whole model on one rank's threads, to those of the
// ranks of `site`: each has the largest share of weights and heads, and gathers
// besides.
Rates RatesOfRanks(const SessionSite& site, const Rates& rates);

// Predicts a session at `site` with `plan`; `rates` are those of one rank.
// `link`: absent if nothing crosses one.
Prediction Predict(const SessionSite& site, const TierPlan& plan,
                   const std::optional<LinkRate>& link, const Rates& rates,
                   const Work& work);
// Predicts all ranks of a session together, which wait for each other.
Prediction PredictRanks(const std::vector<SessionSite>& sites,
                        const std::vector<TierPlan>& plans,
                        const std::optional<LinkRate>& link, const Rates& rates,
                        const Work& work);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PLAN_PREDICTION_H_
