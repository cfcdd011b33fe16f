#ifndef TIERCEL_RUNTIME_PREDICT_PREDICTION_H_
#define TIERCEL_RUNTIME_PREDICT_PREDICTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "offload/plan/tier_plan.h"
#include "runtime/machine/machine.h"
#include "runtime/predict/rates.h"
#include "runtime/predict/session_plan.h"

namespace tiercel {

// Steps that read no more than so many positions, all of them on the device.
struct FastSteps {
  int64_t positions = 0;
  double share = 0;  // of all steps
};

// What a session is asked to do, in tokens.
struct Work {
  int64_t cached = 0;     // tokens of the prompt whose KV is there
  int64_t prompt = 0;     // cached ones included
  int64_t generated = 0;  // after the prompt
  FastSteps fast = {};    // of the generation; others read everything
};

struct Prediction {
  double ttft_s = 0;  // time to first token
  // Time between tokens, half way through the generated: the mean of fast and
  // other steps.
  double tbt_s = 0;
  // KV that comes to one rank's device for a token then, the mean of such
  // steps: of several ranks the most.
  double swept_bytes = 0;
  MemoryUse memory;
};

// `rates`, of a whole model on one rank's threads, as the ranks of `site` have
// them: the largest shares of weights and heads, and what they gather.
Rates RatesOfRanks(const SessionSite& site, const Rates& rates);

// Predicts a session at `site` with `plan`; `rates` are those of one rank.
// `link`: absent where nothing crosses one.
Prediction Predict(const SessionSite& site, const TierPlan& plan,
                   const std::optional<LinkRate>& link, const Rates& rates,
                   const Work& work);
// A session's ranks together: they wait for each other.
Prediction PredictRanks(const std::vector<SessionSite>& sites,
                        const std::vector<TierPlan>& plans,
                        const std::optional<LinkRate>& link, const Rates& rates,
                        const Work& work);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PREDICT_PREDICTION_H_
