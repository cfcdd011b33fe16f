#ifndef TIERCEL_RUNTIME_PREDICT_PLAN_H_
#define TIERCEL_RUNTIME_PREDICT_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/model/model.h"
#include "runtime/predict/prediction.h"
#include "runtime/predict/rates_cache.h"
#include "runtime/predict/session_plan.h"

namespace tiercel {

// A model that drafts, and the session that it does so in.
struct DraftPart {
  const Model& model;
  const SessionOptions options;
};

// Where each rank of a session would be, and what it would take there.
struct PlannedRanks {
  std::vector<SessionSite> sites;
  std::vector<TierPlan> plans;
  std::vector<int64_t> others;  // bytes that others hold of its device

  bool Fit(int64_t context) const;
};
// Plans a session with `options`, with `draft` beside it, for the checkpoint's
// context where none is asked for. Errors: those of MeasureWeights.
absl::StatusOr<PlannedRanks> PlanOfRanks(const Model& model,
                                         const SessionOptions& options,
                                         const std::optional<DraftPart>& draft);

// What a session with `options`, and with `draft` beside it, would take and how
// fast it would be with its context full and nobody drafting, some of its steps
// `fast` by their policy's plain form, where `kept` says how fast the machine
// is, before any weights are read: the document of `tiercel plan`. What others
// hold of the machine's memory counts. Tiers are of all ranks; with several
// each has its own besides. What does not fit is no error. Errors: those of
// CheckSessionOptions and of MeasureWeights.
absl::StatusOr<nlohmann::json> DescribePlan(
    const Model& model, const SessionOptions& options,
    const std::optional<KeptRates>& kept = std::nullopt,
    const std::optional<DraftPart>& draft = std::nullopt,
    const FastSteps& fast = {});

// Over how many ranks `model`, which has no weights yet, is best opened for
// such a session: 1 to as many as there are GPUs. It is the count for which the
// fewest bytes of KV come over one rank's link in a step with the context full;
// of equals the fewest ranks, which gather least. Where none fits it is the
// most that the model can be split into; on another device than a GPU 1.
// Errors: those of DescribePlan and Machine::FindDevice.
absl::StatusOr<int> ChooseRanks(const Model& model,
                                const SessionOptions& options,
                                const std::optional<DraftPart>& draft,
                                const FastSteps& fast);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PREDICT_PLAN_H_
