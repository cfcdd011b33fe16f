#ifndef TIERCEL_RUNTIME_PLAN_KNOWN_RATES_H_
#define TIERCEL_RUNTIME_PLAN_KNOWN_RATES_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "nlohmann/json.hpp"
#include "runtime/model/model.h"
#include "runtime/plan/rates.h"
#include "runtime/plan/rates_cache.h"
#include "runtime/plan/session_plan.h"

namespace tiercel {

// All that the rates of `model` with such KV depend on, as far as a program can
// tell: models of one shape with weights of the same types share their rates.
// `texts`, here and below: the folder whose disk has pages; null: no pages are
// on disk. Errors: those of ChooseIsa.
absl::StatusOr<nlohmann::json> RatesKey(
    const Model& model, const KvLayout& layout,
    const PromptCacheFolder* texts = nullptr);

// This machine's rates, as saved in `folder`; absent: none are.
std::optional<KeptRates> KnownRates(const Model& model, const KvLayout& layout,
                                    const std::string& folder,
                                    const PromptCacheFolder* texts = nullptr);

// This machine's rates, measured first if none are saved: with the model's
// weights, or with a few layers that are read for it. A measurement that is not
// steady, now or earlier, is repeated for `again_s` seconds at most
// (MeasuringAgain). If it is cancelled, nothing is saved. Errors: cancelled;
// cannot_write; those of LoadWeights, MeasureRates and MeasureDiskRate.
absl::StatusOr<KeptRates> MeasureKnownRates(
    const Model& model, const KvLayout& layout, const std::string& folder,
    double again_s, RatesProgress progress,
    const PromptCacheFolder* texts = nullptr);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_PLAN_KNOWN_RATES_H_
