#include "runtime/predict/prediction.h"

#include <algorithm>

#include "offload/plan/pipeline.h"

namespace tiercel {
namespace {

// The pages before `position` that are full.
int64_t FullPages(int64_t position) { return position / kPageTokens; }

class Predictor {
 public:
  Predictor(const ModelConfig& config, const Rates& rates, const TierPlan& plan,
            const std::optional<LinkRate>& link)
      : config_(config), rates_(rates), plan_(plan), link_(link) {}

  // `rows` rows that follow `before` tokens, to the logits of the last.
  double Prompt(int64_t before, int64_t rows) const {
    const auto n = static_cast<double>(rows);
    const double positions = n * static_cast<double>(before) + n * (n + 1) / 2;
    LayerTimes layer;
    layer.compute_s = std::max(rates_.step_s, n * rates_.prompt_row_s) +
                      positions * rates_.prompt_position_s;
    if (!link_.has_value()) {
      return config_.layers * layer.compute_s + rates_.logits_s;
    }
    layer.up_s = OnLink(SweptPages(before));
    layer.down_s = OnLink(FullPages(before + rows) - FullPages(before));
    return PromptSeconds(config_.layers, layer) + rates_.logits_s;
  }

  // One token after `before`.
  double Step(int64_t before) const {
    LayerTimes layer;
    layer.compute_s = rates_.step_s +
                      static_cast<double>(before + 1) * rates_.step_position_s;
    if (!link_.has_value()) {
      return config_.layers * layer.compute_s + rates_.logits_s;
    }
    const int64_t pages = SweptPages(before);
    layer.up_s = OnLink(pages);
    const double alone = StepSeconds(config_.layers, layer, rates_.logits_s);
    // The cores that copy are those that compute.
    const double copying = CopySeconds(pages * config_.layers);
    const double share = std::min(1.0, copying / alone);
    const double slower = 1 + (rates_.copy_slowdown - 1) * share;
    layer.compute_s *= slower;
    return StepSeconds(config_.layers, layer, rates_.logits_s * slower);
  }

 private:
  // Pages of a layer that a step reads and the device does not hold.
  int64_t SweptPages(int64_t before) const {
    return std::max<int64_t>(0, FullPages(before) - plan_.shape.resident_pages -
                                    plan_.shape.newest_pages);
  }
  double BytesOf(int64_t pages) const {
    return static_cast<double>(pages * plan_.shape.layout.PageBytes());
  }
  // Seconds that the CPU spends copying so many pages.
  double CopySeconds(int64_t pages) const {
    return rates_.copy_bytes_per_s > 0
               ? BytesOf(pages) / rates_.copy_bytes_per_s
               : 0;
  }
  // Seconds that the link is occupied with pages of one layer.
  double OnLink(int64_t pages) const {
    if (pages == 0) return 0;
    return std::max(BytesOf(pages) / link_->bytes_per_s + link_->latency_s,
                    CopySeconds(pages));
  }

  const ModelConfig& config_;
  const Rates& rates_;
  const TierPlan& plan_;
  const std::optional<LinkRate>& link_;
};

}  // namespace

Prediction Predict(const SessionSite& site, const TierPlan& plan,
                   const std::optional<LinkRate>& link, const Rates& rates,
                   const Work& work) {
  const Predictor predictor(site.config, rates, plan, link);
  Prediction prediction;
  prediction.ttft_s = predictor.Prompt(work.cached, work.prompt - work.cached);
  prediction.tbt_s = predictor.Step(work.prompt + work.generated / 2);

  // The open page goes down when it is full; in place it is there from its
  // first token on.
  const int64_t tokens = work.prompt + work.generated;
  const int64_t pages =
      FullPages(plan.in_place ? tokens + kPageTokens - 1 : tokens);
  prediction.memory.host =
      pages * plan.shape.layers * plan.shape.layout.PageBytes();
  // In place a session takes what its rows need, and a view for its context;
  // else all it could ever need.
  TierPlan taken = plan;
  if (plan.in_place) {
    taken = site.PlanFor(std::max<int64_t>(1, work.prompt - work.cached));
    taken.views = plan.views;
  }
  prediction.memory.device = taken.DeviceBytes();
  return prediction;
}

}  // namespace tiercel
