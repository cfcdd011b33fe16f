#ifndef TIERCEL_RUNTIME_PREDICT_PREDICTION_H_
#define TIERCEL_RUNTIME_PREDICT_PREDICTION_H_

#include <cstdint>
#include <optional>

#include "offload/plan/tier_plan.h"
#include "runtime/machine/machine.h"
#include "runtime/predict/rates.h"
#include "runtime/predict/session_plan.h"

namespace tiercel {

// What a session is asked to do, in tokens.
struct Work {
  int64_t cached = 0;     // of the prompt, whose KV is there
  int64_t prompt = 0;     // cached ones included
  int64_t generated = 0;  // after it
};

struct Prediction {
  double ttft_s = 0;  // time to first token
  double tbt_s = 0;   // time between tokens, half way through the generated
  MemoryUse memory;
};

// Predicts a session at `site` with `plan`. `link`: absent where nothing
// crosses one.
Prediction Predict(const SessionSite& site, const TierPlan& plan,
                   const std::optional<LinkRate>& link, const Rates& rates,
                   const Work& work);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PREDICT_PREDICTION_H_
