#include "runtime/predict/plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {

namespace {

// The weights of a model that drafts for `target`, where it may be the same.
absl::StatusOr<WeightSizes> DraftWeights(const Model& draft,
                                         const Model& target) {
  absl::StatusOr<WeightSizes> weights =
      MeasureWeights(*draft.checkpoint, draft.config);
  if (!weights.ok()) return Annotate(weights.status(), "draft model");
  if (&draft == &target) weights->bytes = 0;
  return weights;
}

// What of the machine's memory such weights of `model` have taken.
int64_t Taken(const Model& model, const WeightSizes& weights) {
  return model.weights != nullptr ? weights.bytes : 0;
}

}  // namespace

absl::StatusOr<nlohmann::json> DescribePlan(
    const Model& model, const SessionOptions& options,
    const std::optional<KeptRates>& kept, const std::optional<DraftPart>& draft,
    const FastSteps& fast) {
  const ModelConfig& config = model.config;
  if (absl::Status s = CheckSessionOptions(config, options); !s.ok()) return s;
  absl::StatusOr<WeightSizes> weights =
      MeasureWeights(*model.checkpoint, config);
  if (!weights.ok()) return weights.status();
  const Machine& machine = *model.machine;
  int64_t others = machine.memory().used() - Taken(model, *weights);
  int64_t draft_bytes = 0;
  if (draft.has_value()) {
    const absl::StatusOr<WeightSizes> small = DraftWeights(draft->model, model);
    if (!small.ok()) return small.status();
    others -= Taken(draft->model, *small);
    draft_bytes =
        SiteOf(draft->model, *small, draft->options, machine.threads())
            .PlanFor(draft->options.context)
            .DeviceBytes();
  }
  weights->bytes += others;
  SessionSite site = SiteOf(model, *weights, options, machine.threads());
  site.draft_bytes = draft_bytes;
  const int64_t context =
      options.context > 0 ? options.context : config.context;
  const TierPlan plan = site.PlanFor(context);
  const std::optional<LinkRate> link = machine.link();
  nlohmann::json document = {
      {"context", context},
      {"tiers",
       {{"device",
         {{"weights", plan.weights - others},
          {"staging", plan.staging},
          {"workspace", plan.workspace},
          {"views", plan.views},
          {"resident", plan.resident}}},
        {"host", {{"kv", plan.host_kv}, {"weights", 0}}}}},
      {"ttft_s", nullptr},
      {"tbt_ms", nullptr},
      {"link_gb_s", nullptr},
      {"fits", site.Fits(context)},
      {"device_bytes", site.device_bytes},
      {"machine_bytes", site.machine_bytes},
      {"simulated", machine.simulated()}};
  if (others > 0) document["tiers"]["device"]["others"] = others;
  if (draft.has_value()) document["tiers"]["device"]["draft"] = plan.draft;
  if (link.has_value()) document["link_gb_s"] = link->bytes_per_s / 1e9;
  if (!site.Fits(context)) {
    document["max_context"] = site.LargestContext(context);
    document["min_device_bytes"] = site.LeastDeviceBytes(context);
  }
  document["warnings"] = nlohmann::json::array();
  if (kept.has_value()) {
    if (const std::string warning = kept->Warning(); !warning.empty()) {
      document["warnings"].push_back(warning);
    }
    // The first token after a prompt that leaves room for it, the last token.
    const Prediction times =
        Predict(site, plan, link, kept->best.rates,
                {.cached = 0,
                 .prompt = std::max<int64_t>(1, context - 1),
                 .fast = fast});
    document["ttft_s"] = times.ttft_s;
    document["tbt_ms"] = 1e3 * times.tbt_s;
  }
  return document;
}

}  // namespace tiercel
