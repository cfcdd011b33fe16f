#include "runtime/plan/prediction.h"

#include <algorithm>

#include "kernels/system/resource_limits.h"
#include "runtime/plan/pipeline.h"

namespace tiercel {
namespace {

// The number of full pages before `position`.
int64_t FullPages(int64_t position) { return position / kPageTokens; }

class Predictor {
 public:
  Predictor(const SessionSite& site, const Rates& rates, const TierPlan& plan,
            const std::optional<LinkRate>& link)
      : site_(site),
        extent_(site.extent),
        rates_(rates),
        plan_(plan),
        link_(link) {
    layers_ = extent_.has_value() ? extent_->full_layers : site.config.layers;
    layers_above_ = site.config.layers - layers_;
  }

  // Seconds for `rows` rows that follow `before` tokens, up to the logits of
  // the last.
  double Prompt(int64_t before, int64_t rows) const {
    const auto n = static_cast<double>(rows);
    const double positions = n * static_cast<double>(before) + n * (n + 1) / 2;
    LayerTimes layer;
    layer.compute_s = std::max(rates_.step_s * site_.weights.MoreOfRows(
                                                   site_.config.experts, rows),
                               n * rates_.prompt_row_s) +
                      positions * rates_.prompt_position_s;
    // Only the prompt's tail goes through the layers above.
    const double after =
        layers_above_ * std::max(rates_.step_s, static_cast<double>(Tail()) *
                                                    rates_.prompt_row_s) +
        rates_.logits_s;
    if (!Moves()) return layers_ * layer.compute_s + after;
    const int64_t full = FullPages(before + rows);
    layer.up_s = Up(before) + Weights();
    layer.down_s = std::max(OnLink(full - FullPages(before)),
                            OnDisk(FullPages(before), full));
    if (link_.has_value() && rows > plan_.state_rows) {
      layer.states_s = StatesOnLink(before, rows);
    }
    return PromptSeconds(layers_, layer) + after;
  }

  // Seconds for one token after `before`, of which `answered` follow the
  // prompt.
  double Step(int64_t before, int64_t answered) const {
    const int64_t hosts = HostPages(before);
    const auto here = static_cast<double>(before + 1 - hosts * kPageTokens);
    LayerTimes layer;
    layer.compute_s =
        rates_.step_s + here * rates_.step_position_s + HostSeconds(hosts);
    // The pages that the layers above read are on the device, or nearly all.
    const double after = rates_.StepSeconds(layers_above_, Above(answered) + 1);
    if (!Moves()) return layers_ * layer.compute_s + after;
    const int64_t pages = SweptPages(before) - hosts;
    layer.up_s = Up(before, hosts) + Weights();
    const double alone = StepSeconds(layers_, layer, after);
    // Copies use the cores that compute.
    const double copying =
        link_.has_value() ? CopySeconds(pages * layers_)
                          : layers_ * OnCpu(plan_.shape.resident_pages,
                                            plan_.shape.resident_pages + pages);
    const double share = std::min(1.0, copying / alone);
    const double slower = 1 + (rates_.copy_slowdown - 1) * share;
    layer.compute_s *= slower;
    return StepSeconds(layers_, layer, after * slower);
  }

  // Seconds for one token after `before` that reads at most `positions`.
  double FastStep(int64_t before, int64_t positions) const {
    const int64_t read = std::min(before + 1, positions);
    LayerTimes layer;
    layer.compute_s =
        rates_.step_s + static_cast<double>(read) * rates_.step_position_s;
    layer.up_s = Weights();
    return StepSeconds(layers_, layer, rates_.logits_s);
  }

  // Bytes that cross to the device for one token after `before`.
  double SweptBytes(int64_t before) const {
    return plan_.in_place
               ? 0
               : layers_ * BytesOf(SweptPages(before) - HostPages(before));
  }

  // Counts the pages of single layers that make up `pages` pages of a sequence,
  // each of which exists in the first layers or in all.
  int64_t PageLayers(int64_t pages, int64_t prompt) const {
    if (!extent_.has_value()) return pages * layers_;
    const int64_t sinks = FullPages(extent_->sinks + kPageTokens - 1);
    const int64_t answer = pages - FullPages(prompt - Tail());
    return pages * layers_ + std::min(pages, sinks + answer) * layers_above_;
  }

 private:
  int64_t Tail() const { return extent_.has_value() ? extent_->TailRows() : 0; }
  // Positions that exist in the layers above.
  int64_t Above(int64_t answered) const {
    return extent_.has_value() ? extent_->PositionsAbove() + answered : 0;
  }
  // The number of a layer's pages that a step reads and the device does not
  // hold.
  int64_t SweptPages(int64_t before) const {
    return std::max<int64_t>(0, FullPages(before) - plan_.shape.resident_pages -
                                    plan_.shape.newest_pages);
  }
  // The number of these that the host attends to, as Staging chooses them.
  int64_t HostPages(int64_t before) const {
    const TierShape& shape = plan_.shape;
    const int64_t most = shape.host.Pages(SweptPages(before));
    int64_t count = 0;
    while (count < most && !shape.IsOnDisk(shape.resident_pages + count)) {
      ++count;
    }
    return count;
  }
  // Seconds that the host takes for these: here it computes on the same CPU.
  double HostSeconds(int64_t pages) const {
    const auto n = static_cast<double>(pages);
    return std::max(n * plan_.shape.host.host_s,
                    n * kPageTokens * rates_.step_position_s);
  }
  // Returns true if pages move at a known rate.
  bool Moves() const {
    return link_.has_value() ||
           (plan_.shape.disk_pages > 0 && rates_.disk_bytes_per_s > 0);
  }
  // Seconds until the pages of a layer that a step reads are on the device, but
  // for the host's; disk and link work in parallel.
  double Up(int64_t before, int64_t hosts = 0) const {
    const int64_t first = plan_.shape.resident_pages;
    return std::max(OnLink(SweptPages(before) - hosts),
                    OnDisk(first + hosts, first + SweptPages(before)));
  }
  // Seconds that the disk is occupied with the pages [begin, end) of a layer.
  double OnDisk(int64_t begin, int64_t end) const {
    if (rates_.disk_bytes_per_s <= 0) return 0;
    return BytesOf(plan_.shape.OnDisk(begin, end)) / rates_.disk_bytes_per_s;
  }
  // Seconds that a CPU is occupied with reading those.
  double OnCpu(int64_t begin, int64_t end) const {
    if (rates_.disk_bytes_per_cpu_s <= 0) return 0;
    return BytesOf(plan_.shape.OnDisk(begin, end)) /
           rates_.disk_bytes_per_cpu_s;
  }
  double BytesOf(int64_t pages) const {
    return static_cast<double>(pages * plan_.shape.layout.PageBytes());
  }
  // Seconds that the CPU spends copying `bytes`.
  double CopyingBytes(double bytes) const {
    return rates_.copy_bytes_per_s > 0 ? bytes / rates_.copy_bytes_per_s : 0;
  }
  double CopySeconds(int64_t pages) const {
    return CopyingBytes(BytesOf(pages));
  }
  double OnLink(double bytes, int64_t copies) const {
    return std::max(bytes / link_->bytes_per_s +
                        static_cast<double>(copies) * link_->latency_s,
                    CopyingBytes(bytes));
  }
  // Seconds that the link is occupied with pages of one layer.
  double OnLink(int64_t pages) const {
    if (pages == 0 || !link_.has_value()) return 0;
    return OnLink(BytesOf(pages), /*copies=*/1);
  }
  // Seconds that the link is occupied with weights of the host tier, of which
  // each layer of all has its share here.
  double Weights() const {
    if (site_.weights.host_bytes == 0 || !link_.has_value()) return 0;
    return OnLink(
        static_cast<double>(site_.weights.host_bytes) / site_.config.layers,
        /*copies=*/0);
  }
  // Seconds that the link is occupied with tiles of hidden states, up and down.
  double StatesOnLink(int64_t before, int64_t rows) const {
    int64_t blocks = 0;
    for (int64_t row = 0; row < rows; ++blocks) {
      row += site_.RowsAtOnce(before + row);
    }
    const int64_t bytes = 2 * rows * site_.StateBytes();
    return OnLink(static_cast<double>(bytes), 2 * blocks);
  }

  const SessionSite& site_;
  const std::optional<KvExtent>& extent_;
  int layers_;        // layers in which every position exists
  int layers_above_;  // further layers, in which some do
  const Rates& rates_;
  const TierPlan& plan_;
  const std::optional<LinkRate>& link_;
};

}  // namespace

Rates RatesOfRanks(const SessionSite& site, const Rates& rates) {
  if (site.split == nullptr || site.split->ranks() == 1) return rates;
  const ModelSplit& split = *site.split;
  // Rough costs in this process: seconds until all ranks have reached a
  // barrier, and bytes a second that one gathers from others.
  constexpr double kMeeting = 5e-6;
  constexpr double kGathered = 4e9;
  constexpr int kMeetingsOfLayer = 5;  // four gathers, and one before the layer
  double weights = 0;
  double heads = 0;
  double vocab = 0;
  double bytes = 0;        // for a row, in a layer
  double logit_bytes = 0;  // for a row
  for (int rank = 0; rank < split.ranks(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    const bool any = site.config.experts.count > 0;
    const Columns& ffn = any ? split.expert_ffn()[at] : split.ffn()[at];
    weights = std::max(weights,
                       static_cast<double>(ffn.size()) /
                           (any ? site.config.experts.ffn : site.config.ffn));
    heads = std::max(heads, static_cast<double>(split.heads(rank).size()) /
                                site.config.heads);
    vocab = std::max(vocab, static_cast<double>(split.vocab()[at].size()) /
                                static_cast<double>(site.config.vocab));
    const double of_experts =
        static_cast<double>(
            site.config.experts.LayersBefore(site.config.layers)) /
        site.config.layers;
    bytes = std::max(
        bytes,
        (1 - of_experts) * static_cast<double>(split.GatheredPerLayer(rank)) +
            of_experts * static_cast<double>(
                             split.GatheredPerLayer(rank, /*experts=*/true)));
    logit_bytes =
        std::max(logit_bytes, static_cast<double>(split.GatheredLogits(rank)));
  }
  if (!site.device.apart) {  // ranks beyond the CPUs take turns
    const double turns = std::max(
        1.0, static_cast<double>(split.ranks() * site.threads) / AllowedCpus());
    weights *= turns;
    heads *= turns;
    vocab *= turns;
  }
  Rates own = rates;
  own.prompt_row_s = rates.prompt_row_s * weights + bytes / kGathered;
  own.prompt_position_s *= heads;
  own.step_s =
      rates.step_s * weights + kMeetingsOfLayer * kMeeting + bytes / kGathered;
  own.step_position_s *= heads;
  own.logits_s = rates.logits_s * vocab + kMeeting + logit_bytes / kGathered;
  return own;
}

Prediction Predict(const SessionSite& site, const TierPlan& plan,
                   const std::optional<LinkRate>& link, const Rates& rates,
                   const Work& work) {
  const Predictor predictor(site, rates, plan, link);
  Prediction prediction;
  prediction.ttft_s = predictor.Prompt(work.cached, work.prompt - work.cached);
  const int64_t half = work.generated / 2;
  const double slow = 1 - work.fast.share;
  if (slow > 0) {
    prediction.tbt_s = slow * predictor.Step(work.prompt + half, half);
    prediction.swept_bytes = slow * predictor.SweptBytes(work.prompt + half);
  }
  prediction.tbt_s += work.fast.share * predictor.FastStep(work.prompt + half,
                                                           work.fast.positions);

  // An open page goes to the host tier once it is full; in place it is there
  // from its first token on.
  const int64_t tokens = work.prompt + work.generated;
  const int64_t all =
      FullPages(plan.in_place ? tokens + kPageTokens - 1 : tokens);
  const int64_t pages =
      all - (plan.shape.disk_pages > 0 ? plan.shape.OnDisk(0, all) : 0);
  prediction.memory.host =
      predictor.PageLayers(pages, work.prompt) * plan.shape.layout.PageBytes();
  // In place a session takes what its rows need, and a view for its whole
  // context; else it takes all it could ever need.
  TierPlan taken = plan;
  if (plan.in_place) {
    taken = site.PlanFor(std::max<int64_t>(1, work.prompt - work.cached));
    taken.views = plan.views;
  }
  prediction.memory.device = taken.DeviceBytes();
  return prediction;
}

Prediction PredictRanks(const std::vector<SessionSite>& sites,
                        const std::vector<TierPlan>& plans,
                        const std::optional<LinkRate>& link, const Rates& rates,
                        const Work& work) {
  Prediction all;
  for (size_t i = 0; i < sites.size(); ++i) {
    const Prediction own =
        Predict(sites[i], plans[i], link, RatesOfRanks(sites[i], rates), work);
    all.ttft_s = std::max(all.ttft_s, own.ttft_s);
    all.tbt_s = std::max(all.tbt_s, own.tbt_s);
    all.swept_bytes = std::max(all.swept_bytes, own.swept_bytes);
    all.memory.host += own.memory.host;
    all.memory.device += own.memory.device;
  }
  return all;
}

}  // namespace tiercel
