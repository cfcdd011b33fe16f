#include "runtime/plan/plan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/system/resource_limits.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

namespace {

// The sizes of the weights of `draft`, which may be `target` itself.
absl::StatusOr<WeightSizes> DraftWeights(const Model& draft,
                                         const Model& target) {
  absl::StatusOr<std::vector<WeightSizes>> sizes = draft.MeasureRanks();
  if (!sizes.ok()) return Annotate(sizes.status(), "draft model");
  WeightSizes weights = std::move(sizes->front());
  if (&draft == &target) weights.bytes = 0;
  return weights;
}

// The bytes of `weights` that `model` has already taken of the machine's
// memory.
int64_t Taken(const Model& model, const WeightSizes& weights) {
  return model.weights != nullptr ? weights.bytes : 0;
}

// A prompt that fills the context but for one token, and that token.
Work FullContext(int64_t context, const FastSteps& fast) {
  return {
      .cached = 0, .prompt = std::max<int64_t>(1, context - 1), .fast = fast};
}

nlohmann::json TiersJson(const TierPlan& plan, int64_t others) {
  nlohmann::json tiers = {
      {"device",
       {{"weights", plan.weights - others},
        {"draft", plan.draft},
        {"staging", plan.staging},
        {"workspace", plan.workspace},
        {"views", plan.views},
        {"resident", plan.resident}}},
      {"host", {{"kv", plan.host_kv}, {"weights", plan.host_weights}}}};
  if (plan.host_states + plan.host_distributions > 0) {
    tiers["host"]["workspace"] = plan.host_states + plan.host_distributions;
  }
  if (plan.host_buffers > 0) tiers["host"]["buffers"] = plan.host_buffers;
  if (plan.disk_kv > 0) tiers["disk"] = {{"kv", plan.disk_kv}};
  return tiers;
}

nlohmann::json SumOf(const PlannedRanks& ranks) {
  nlohmann::json sum;
  for (size_t i = 0; i < ranks.plans.size(); ++i) {
    const nlohmann::json own = TiersJson(ranks.plans[i], ranks.others[i]);
    for (const auto& [tier, parts] : own.items()) {
      for (const auto& [part, bytes] : parts.items()) {
        nlohmann::json& of_all = sum[tier][part];
        of_all = (of_all.is_null() ? 0 : of_all.get<int64_t>()) +
                 bytes.get<int64_t>();
      }
    }
  }
  return sum;
}

nlohmann::json RanksJson(const PlannedRanks& ranks, int64_t context) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < ranks.plans.size(); ++i) {
    nlohmann::json own = TiersJson(ranks.plans[i], ranks.others[i]);
    const ModelSplit& split = *ranks.sites[i].split;
    const auto rank = static_cast<int>(i);
    own["heads"] = {split.heads(rank).begin, split.heads(rank).end};
    own["kv_heads"] = {split.kv_heads(rank).begin, split.kv_heads(rank).end};
    own["fits"] = ranks.sites[i].Fits(context);
    if (!own["fits"]) {
      own["min_device_bytes"] = ranks.sites[i].LeastDeviceBytes(context);
    }
    list.push_back(std::move(own));
  }
  return list;
}

// Bytes of KV that ranks keep in duplicate: those of KV heads that several
// ranks share, counted beyond the first copy.
int64_t SharedKvBytes(const PlannedRanks& ranks) {
  int64_t bytes = 0;
  for (size_t i = 0; i < ranks.plans.size(); ++i) {
    const auto rank = static_cast<int>(i);
    if (ranks.sites[i].split->IsFirstOfHeads(rank)) continue;
    const TierPlan& plan = ranks.plans[i];
    bytes += plan.host_kv + (plan.on_device ? plan.resident : 0);
  }
  return bytes;
}

// The prediction for a single rank that has the device, the link and the
// threads of all: {"ttft_s", "tbt_ms", "fits"}.
absl::StatusOr<nlohmann::json> OneRank(const Model& model,
                                       const SessionSite& of_ranks,
                                       const std::optional<LinkRate>& link,
                                       Rates rates, const Work& work,
                                       int64_t context) {
  ASSIGN_OR_RETURN(const WeightSizes weights,
                   MeasureWeights(*model.checkpoint, model.config));
  SessionSite site = of_ranks;
  site.weights = weights;
  site.there = {};
  site.split = nullptr;
  site.rank = 0;
  site.layout.kv_heads = model.config.kv_heads;
  // The single rank has alone what several divide among them, but for the
  // device: simulated devices and GPUs are one for each rank.
  const auto all = [&](int64_t of_one) {
    return of_one > std::numeric_limits<int64_t>::max() / model.ranks()
               ? of_one
               : of_one * model.ranks();
  };
  site.machine_bytes = all(site.machine_bytes);
  site.host_bytes = all(site.host_bytes);
  site.disk_bytes = all(site.disk_bytes);
  if (site.device.in_place()) site.device_bytes = all(site.device_bytes);
  if (!site.device.apart) {
    const int cpus = AllowedCpus();
    const int asked = model.options.machine.threads;
    site.threads = asked > 0 ? asked : cpus;
    const double share = static_cast<double>(std::min(of_ranks.threads, cpus)) /
                         std::min(site.threads, cpus);
    for (double* const seconds :
         {&rates.prompt_row_s, &rates.prompt_position_s, &rates.step_s,
          &rates.step_position_s, &rates.logits_s}) {
      *seconds *= share;
    }
  }
  const Prediction times =
      Predict(site, site.PlanFor(context), link, rates, work);
  return nlohmann::json{{"ttft_s", times.ttft_s},
                        {"tbt_ms", 1e3 * times.tbt_s},
                        {"fits", site.Fits(context)}};
}

}  // namespace

bool PlannedRanks::Fit(int64_t context) const {
  return std::all_of(sites.begin(), sites.end(),
                     [&](const auto& site) { return site.Fits(context); });
}

absl::StatusOr<PlannedRanks> PlanOfRanks(
    const Model& model, const SessionOptions& options,
    const std::optional<DraftPart>& draft) {
  ASSIGN_OR_RETURN(const std::vector<WeightSizes> sizes, model.MeasureRanks());
  const Machine& machine = *model.machine;
  const int64_t context = options.Context(model.config);
  PlannedRanks ranks;
  for (int rank = 0; rank < model.ranks(); ++rank) {
    WeightSizes weights = sizes[static_cast<size_t>(rank)];
    int64_t others =
        model.machine_of(rank).memory().used() - Taken(model, weights);
    int64_t draft_bytes = 0;
    if (draft.has_value() && rank == 0) {
      ASSIGN_OR_RETURN(const WeightSizes small,
                       DraftWeights(draft->model, model));
      others -= Taken(draft->model, small);
      SessionSite drafts =
          SiteOf(draft->model, small, draft->options, machine.threads());
      drafts.promised = 0;  // it counts with the target's others
      draft_bytes = drafts.PlanFor(draft->options.context).DeviceBytes();
    }
    weights.bytes += others;
    SessionSite site = SiteOf(model, weights, options, machine.threads(), rank);
    site.draft_bytes = draft_bytes;
    ranks.plans.push_back(site.PlanFor(context));
    ranks.others.push_back(others +
                           (site.device.in_place() ? site.promised : 0));
    ranks.sites.push_back(std::move(site));
  }
  return ranks;
}

absl::StatusOr<nlohmann::json> DescribePlan(
    const Model& model, const SessionOptions& options,
    const std::optional<KeptRates>& kept, const std::optional<DraftPart>& draft,
    const FastSteps& fast) {
  RETURN_IF_ERROR(CheckSessionOptions(model.config, options));
  ASSIGN_OR_RETURN(const PlannedRanks planned,
                   PlanOfRanks(model, options, draft));
  const PlannedRanks& ranks = planned;
  const Machine& machine = *model.machine;
  const int64_t context = options.Context(model.config);
  const int64_t all_others =
      std::accumulate(ranks.others.begin(), ranks.others.end(), int64_t{0});
  const SessionSite& site = ranks.sites.front();
  const std::optional<LinkRate> link = machine.device().link();
  nlohmann::json document = {{"context", context},
                             {"tiers", SumOf(ranks)},
                             {"ttft_s", nullptr},
                             {"tbt_ms", nullptr},
                             {"link_gb_s", nullptr},
                             {"fits", ranks.Fit(context)},
                             {"device_bytes", site.device_bytes},
                             {"machine_bytes", site.machine_bytes},
                             {"simulated", machine.device().simulated()}};
  if (model.config.experts.count > 0) {
    document["experts"] = DescribeExperts(model.config);
    int64_t bytes = 0;
    for (const SessionSite& each : ranks.sites) {
      bytes += each.weights.expert_bytes;
    }
    document["experts"]["bytes_per_token"] = bytes;
  }
  nlohmann::json& device = document["tiers"]["device"];
  if (all_others > 0) device["others"] = all_others;
  if (!draft.has_value()) device.erase("draft");
  if (link.has_value()) document["link_gb_s"] = link->bytes_per_s / 1e9;
  if (!ranks.Fit(context)) {
    int64_t least = 0;
    for (const SessionSite& each : ranks.sites) {
      least = std::max(least, each.LeastDeviceBytes(context));
    }
    document["max_context"] = LargestContext(ranks.sites, context);
    document["min_device_bytes"] = least;
    document["lacks"] = CheckRanksFit(ranks.sites, context).message();
  }
  if (model.ranks() > 1) {
    document["ranks"] = RanksJson(ranks, context);
    document["shared_kv_bytes"] = SharedKvBytes(ranks);
  }
  document["warnings"] = model.warnings;
  if (const std::string warning = ExtentWarning(site, context);
      !warning.empty()) {
    document["warnings"].push_back(warning);
  }
  if (options.context == 0) {
    if (const std::string warning = CrowdedBy(ranks.sites, context);
        !warning.empty()) {
      document["warnings"].push_back(warning);
    }
  }
  if (!kept.has_value()) return document;
  if (const std::string warning = kept->Warning(); !warning.empty()) {
    document["warnings"].push_back(warning);
  }
  const Work work = FullContext(context, fast);
  const Rates& rates = kept->best.rates;
  const Prediction times =
      PredictRanks(ranks.sites, ranks.plans, link, rates, work);
  document["ttft_s"] = times.ttft_s;
  document["tbt_ms"] = 1e3 * times.tbt_s;
  if (model.ranks() == 1) return document;
  ASSIGN_OR_RETURN(const nlohmann::json alone,
                   OneRank(model, site, link, rates, work, context));
  document["one_rank"] = alone;
  return document;
}

absl::StatusOr<int> ChooseRanks(const Model& model,
                                const SessionOptions& options,
                                const std::optional<DraftPart>& draft,
                                const FastSteps& fast) {
  RETURN_IF_ERROR(CheckSessionOptions(model.config, options));
  if (model.machine->device().kind() != DeviceKind::kCuda) return 1;
  const int64_t context = options.Context(model.config);
  const int gpus = std::min(CountGpus(), ModelSplit::kMostRanks);
  int best = 1;
  std::optional<double> least;  // bytes; absent: nothing fits yet
  for (int count = 1; count <= gpus && least != 0.0; ++count) {
    const absl::StatusOr<std::unique_ptr<Model>> over = model.Over(count);
    if (CodeOf(over.status()) == "cannot_split") continue;
    if (!over.ok()) {
      if (count == 1) return over.status();
      break;  // this program cannot use the next GPU
    }
    std::optional<DraftPart> beside;
    if (draft.has_value()) {
      beside.emplace(DraftPart{&draft->model == &model ? **over : draft->model,
                               draft->options});
    }
    ASSIGN_OR_RETURN(const PlannedRanks ranks,
                     PlanOfRanks(**over, options, beside));
    if (!ranks.Fit(context)) {
      if (!least.has_value()) best = count;
      continue;
    }
    // The bytes that cross the link depend on no rate.
    const double swept =
        PredictRanks(ranks.sites, ranks.plans, /*link=*/std::nullopt, Rates(),
                     FullContext(context, fast))
            .swept_bytes;
    if (least.has_value() && swept >= *least) continue;
    least = swept;
    best = count;
  }
  return best;
}

}  // namespace tiercel
