#ifndef TIERCEL_RUNTIME_PLAN_PLAN_H_
#define TIERCEL_RUNTIME_PLAN_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/model/model.h"
#include "runtime/plan/prediction.h"
#include "runtime/plan/rates_cache.h"
#include "runtime/plan/session_plan.h"

namespace tiercel {

// A draft model, and the options of the session that it drafts in.
struct DraftPart {
  const Model& model;
  const SessionOptions options;
};

// The place of each rank of a session, and the memory it would take there.
struct PlannedRanks {
  std::vector<SessionSite> sites;
  std::vector<TierPlan> plans;
  std::vector<int64_t> others;  // bytes that others hold on its device

  bool Fit(int64_t context) const;
};
// Plans a session with `options`, with `draft` beside it, for the checkpoint's
// context if the options name none. Errors: those of MeasureWeights.
absl::StatusOr<PlannedRanks> PlanOfRanks(const Model& model,
                                         const SessionOptions& options,
                                         const std::optional<DraftPart>& draft);

// The document of `tiercel plan`: the memory that a session with `options`, and
// with `draft` beside it, would take, and how fast it would be with its context
// full and nothing drafted, if `kept` has the machine's rates. `fast` are the
// steps that the policy's plain form makes fast. No weights are read. Memory
// that others hold on the machine counts. Tiers are those of all ranks
// together; of several, each rank is listed too. A session that does not fit is
// no error. Errors: those of CheckSessionOptions and of MeasureWeights.
absl::StatusOr<nlohmann::json> DescribePlan(
    const Model& model, const SessionOptions& options,
    const std::optional<KeptRates>& kept = std::nullopt,
    const std::optional<DraftPart>& draft = std::nullopt,
    const FastSteps& fast = {});

// Returns the number of ranks over which `model`, which has no weights yet, is
// best opened for such a session: 1 to the number of GPUs. It is the count for
// which the fewest bytes of KV cross one rank's link in a step with the context
// full; among equals the smallest, which gathers least. If none fits it is the
// largest that the model can be split into; on a device other than a GPU it is
// 1. Errors: those of DescribePlan and Machine::FindDevice.
absl::StatusOr<int> ChooseRanks(const Model& model,
                                const SessionOptions& options,
                                const std::optional<DraftPart>& draft,
                                const FastSteps& fast);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PLAN_PLAN_H_
