#include "runtime/plan/session_plan.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/attention/attention_gpu.h"
#include "kernels/kv/kv_row.h"
#include "kernels/layer/expert_matmul.h"
#include "kernels/layer/fast_matmul.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "models/decoder/decoder.h"
#include "offload/kv/tiled_states.h"
#include "offload/move/disk_link.h"
#include "offload/ranks/nccl_gather.h"
#include "runtime/pass/pass.h"

namespace tiercel {

namespace {

// Positions are absolute and enter angles and page numbers. The limit is far
// beyond any context, and far below where either would overflow.
constexpr int64_t kMostPosition = int64_t{1} << 40;

// The planned length of an answer that goes deeper than its prompt. A longer
// one takes more of the host tier than was planned.
constexpr int64_t kPlannedAnswer = 1024;

// The most numbers of a row that a product reads, over all ranks, or that ranks
// gather.
int64_t WidestRow(const ModelConfig& config) {
  return std::max({int64_t{config.hidden}, int64_t{config.ffn},
                   int64_t{config.heads} * config.head_dim,
                   int64_t{config.experts.used} * config.experts.ffn});
}

// The scratch memory of products with experts on the CPU.
int64_t ExpertScratch(const ModelConfig& config, int64_t rows, int threads) {
  const ExpertsConfig& experts = config.experts;
  if (experts.count == 0) return 0;
  const int64_t items = rows * experts.used;
  return std::max(ExpertMatmulScratchBytes(rows, items, experts.count,
                                           config.hidden, threads),
                  ExpertMatmulScratchBytes(/*x_rows=*/0, items, experts.count,
                                           experts.ffn, threads));
}

absl::Status CheckKvType(const char* which, DType type, int head_dim) {
  if (InfoOf(type).block_elements == 1) return absl::OkStatus();
  const std::string name(InfoOf(type).name);
  if (!IsKvType(type, InfoOf(type).block_elements)) {
    return UsageError("invalid_kv_type",
                      absl::StrCat("KV type of ", which, ": got ", name,
                                   ", need ", kKvTypeNames));
  }
  if (head_dim % InfoOf(type).block_elements != 0) {
    return UsageError(
        "invalid_kv_type",
        absl::StrCat("KV type of ", which, ": ", name, " needs a head_dim ",
                     "that is a multiple of 32, the model has ", head_dim));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSessionOptions(const ModelConfig& config,
                                 const SessionOptions& options) {
  if (options.context < 0) {
    return UsageError("invalid_context",
                      absl::StrCat("context: got ", options.context,
                                   ", need 0 to ", config.context));
  }
  if (options.context > config.context) {
    const std::string got = absl::StrCat("context: got ", options.context);
    if (config.context == config.sliding_window) {
      return UsageError(
          "invalid_context",
          absl::StrCat(got, ", need at most ", config.context,
                       ", the sliding window of the model's attention"));
    }
    return UsageError(
        "invalid_context",
        absl::StrCat(got, ", the checkpoint is made for ", config.context,
                     "; rope scaling extends it (yarn, by a scale of ",
                     (options.context - 1) / config.context + 1, ")"));
  }
  if (options.first_position < 0 || options.first_position > kMostPosition) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("first_position: got ", options.first_position,
                     ", need 0 to ", kMostPosition));
  }
  constexpr int64_t kMostForks = kMaxStepRows - 1;
  if (options.forks < 0 || options.forks > kMostForks) {
    return UsageError(
        "invalid_argument",
        absl::StrCat("forks: got ", options.forks, ", need 0 to ", kMostForks));
  }
  if (options.fork_tokens < 0 || options.fork_tokens > config.context) {
    return UsageError("invalid_argument",
                      absl::StrCat("fork_tokens: got ", options.fork_tokens,
                                   ", need 0 to ", config.context));
  }
  for (const auto& [which, type] :
       {std::pair("K", options.type_k), std::pair("V", options.type_v)}) {
    RETURN_IF_ERROR(CheckKvType(which, type, config.head_dim));
  }
  if (options.extent.has_value() &&
      (options.extent->full_layers < 1 ||
       options.extent->full_layers > config.layers)) {
    return UsageError("invalid_argument",
                      absl::StrCat("extent: got ", options.extent->full_layers,
                                   " layers with all positions, need 1 to the "
                                   "model's ",
                                   config.layers));
  }
  if (!options.retrieval.has_value()) return absl::OkStatus();
  const RetrievalSize& view = *options.retrieval;
  RETURN_IF_ERROR(CheckRetrievalSize(view));
  const int64_t context = options.Context(config);
  // A view that chooses must be smaller than the context.
  const int64_t growth = view.growth <= context ? view.growth : 0;
  if (!view.must_choose || view.budget + view.window + growth <= context) {
    return absl::OkStatus();
  }
  return UsageError(
      "view_too_large",
      absl::StrCat("a view of ", view.budget, " chosen and ", view.window,
                   " newest tokens, with room for ", growth,
                   " more until it is chosen again, needs a context of ",
                   view.budget + view.window + growth, " at least, it is ",
                   context));
}

int64_t LogitRows() { return 1 + kMaxStepRows; }

// A row holds an id and a probability for each token, and, while it is made, a
// logit from before the repeat penalty; the row that replaces a rejected token
// takes four more floats.
int64_t BlockDistributions::Bytes(int64_t vocab) const {
  constexpr int64_t kDistribution = sizeof(int32_t) + sizeof(float);
  constexpr int64_t kMaking = kDistribution + sizeof(float);
  return vocab *
         (std::max(rows, draft_rows) * kMaking + (drafted + 4) * kDistribution);
}

int64_t SessionSite::OpScratch(int64_t context) const {
  const int64_t widest = WidestRow(config);
  if (device.runs_kernels()) {
    // Attention needs partial results and a list of pages.
    return std::max(kGpuWaveFloats * static_cast<int64_t>(sizeof(float)) +
                        (int64_t{1} << 20) + context,
                    FastMatmulScratchBytes(RowsAtOnce(), widest));
  }
  // Attention needs 8 MiB of partial results and, per thread, a page of K and V
  // as floats. Matrix products need a group of activations and, per thread, two
  // panels of weights as floats.
  constexpr int64_t kFloat = sizeof(float);
  const int64_t q_dim = int64_t{config.heads} * config.head_dim;
  const int64_t per_thread =
      kFloat *
      std::max(int64_t{2} * kPageTokens * (config.head_dim + 16) + 16384,
               int64_t{2 * 16} * widest);
  return std::max(
      (int64_t{12} << 20) + 64 * kFloat * q_dim + threads * per_thread,
      ExpertScratch(config, RowsAtOnce(), threads));
}

AttentionShares::Shape SessionSite::SharesShape(int64_t context) const {
  return {.layout = layout,
          .layers = config.layers,
          .heads = QueryHeads(),
          .begin = first_position,
          .context = context};
}

int64_t SessionSite::RowsAtOnce(int64_t before) const {
  return PromptRowsAtOnce(config, weights.MostPerToken(), device.kind, threads,
                          before);
}

int64_t SessionSite::Scratch(int64_t context) const {
  const int64_t of_ops = OpScratch(context);
  if (!device.runs_kernels() || split == nullptr || split->ranks() == 1) {
    return of_ops;
  }
  return std::max({of_ops,
                   NcclGather::ScratchBytes(RowsAtOnce(), WidestRow(config)),
                   NcclGather::ScratchBytes(LogitRows(), config.vocab)});
}

WorkspaceSize SessionSite::WorkspaceOf(int64_t context) const {
  const ModelSplit of_rank =
      split != nullptr ? *split : ModelSplit::Whole(config);
  return {.scratch = AlignedBytes(Scratch(context)),
          .activations = Decoder::ReservedBytes(config, of_rank, rank,
                                                RowsAtOnce(), /*step_rows=*/0),
          .angles = Decoder::ReservedBytes(config, of_rank, rank, /*rows=*/0,
                                           context),
          .logits = AlignedBytes(LogitRows() * config.vocab *
                                 static_cast<int64_t>(sizeof(float))),
          .distributions = distribution_bytes};
}

HostShare SessionSite::Share() const {
  if (host_bytes_per_s <= 0 || link_bytes_per_s <= 0) return {};
  // The rough rate at which a device reads weights. Each layer's are read while
  // the link works and the host waits.
  const double weights_per_s =
      BodiesOf(device.kind) == Bodies::kGpu ? 5e11 : 1e10;
  const auto page_bytes = static_cast<double>(layout.PageBytes());
  return {.link_s = page_bytes / link_bytes_per_s,
          .host_s = page_bytes / host_bytes_per_s,
          .compute_s = static_cast<double>(weights.bytes_per_token) /
                       config.layers / weights_per_s};
}

HostAttention::Options SessionSite::ShareOptions() const {
  HostAttention::Options options;
  options.head_dim = config.head_dim;
  options.heads = split == nullptr
                      ? config.heads
                      : static_cast<int>(split->heads(rank).size());
  options.q_stride = int64_t{config.head_dim} * QueryHeads();
  options.bytes_per_s = host_bytes_per_s;
  return options;
}

// The memory that a session takes on any device. `weights.bytes` is taken
// before it.
TierNeeds SessionSite::Needs(int64_t context) const {
  WorkspaceSize own = WorkspaceOf(context);
  own.hidden = there.hidden;
  TierNeeds needs = {
      .layout = layout,
      .layers = config.layers,
      .context = context,
      .first_position = first_position,
      .weights = weights.bytes + (device.in_place() ? promised : 0),
      .host_weights = weights.host_bytes,
      .workspace = own.Or(there).DeviceBytes() - there.DeviceBytes() +
                   SharesShape(context).Bytes(),
      .state_bytes = StateBytes(),
      .states_there = there.hidden,
      .tile_rows = TiledStates::kTiles * RowsAtOnce()};
  needs.draft = draft_bytes;
  needs.host = Share();
  if (needs.host.host_s > 0) {
    const HostAttention::Options options = ShareOptions();
    needs.host_folds = HostAttention::DeviceBytes(options.heads);
    needs.host_buffers = HostAttention::HostBytes(options, threads);
  }
  needs.distributions = own.Or(there).distributions - there.distributions;
  // The hidden states are copied, since one layer is written while the next
  // computes.
  if (keeps_layers && (split == nullptr || split->ranks() == 1)) {
    needs.kept_states = context * StateBytes();
  }
  const auto pages = [](int64_t positions) {
    return positions / kPageTokens + (positions % kPageTokens != 0);
  };
  if (forks + branches > 0) {  // a fork begins within a page, which it copies
    const int64_t adds =
        std::max(forks > 0 ? fork_tokens : 0, branches > 0 ? kMaxStepRows : 0);
    // Branches are swept with their block or not at all.
    needs.forks = {forks + (1 + forks) * branches, pages(adds) + 1,
                   branches > 0 ? 2 : 1};
    needs.workspace += Decoder::FoldBytes(config, RowsTogether());
  }
  if (draft_ahead) {
    needs.workspace +=
        WorkspaceOf(context).DeviceBytes() + kMaxStepRows * StateBytes();
  }
  // The host keeps the logits of such a pass while others are made.
  if (forks + branches > 0 || draft_ahead) {
    needs.distributions +=
        RowsTogether() * config.vocab * static_cast<int64_t>(sizeof(float));
  }
  if (kept_first > 0) {
    needs.resident_pages = pages(first_position % kPageTokens + kept_first);
  }
  // The window may begin anywhere in a page, so it may touch one page more.
  if (kept_newest > 0) needs.newest_pages = pages(kept_newest) + 1;
  if (retrieval.has_value()) {
    needs.views = (1 + forks) * Retrieval::Bytes(RetrievalShape(context));
  }
  if (extent.has_value()) {
    needs.shallow_layers = extent->full_layers;
    needs.deep_pages = pages(first_position % kPageTokens + extent->sinks) +
                       pages(std::max(extent->tail, kPlannedAnswer)) + 1;
  }
  return needs;
}

TierPlan SessionSite::PlanFor(int64_t context) const {
  TierNeeds needs = Needs(context);
  const TierPlan all = PlanOnDevice(needs, device_bytes);
  // A device of a stated size always has both tiers.
  const bool prefers_device = device.apart && !device.limited;
  if (on_device || (prefers_device && all.fits())) return all;
  const TierPlan plan = device.in_place() ? PlanInPlace(needs, device_bytes)
                                          : PlanTiers(needs, device_bytes);
  if (disk_bytes == 0 || Fits(plan)) return plan;
  const int64_t buffers =
      DiskLink::BufferBytes(layout.PageBytes(), plan.shape.context_pages);
  if (device.in_place()) {
    // The workspace lies in the memory of the host tier, and hidden states
    // cannot go elsewhere.
    needs.tile_rows = context;
    TierPlan on_disk = PlanWithDisk(
        needs, device_bytes - buffers - needs.kept_states - needs.distributions,
        /*pages_budget=*/0);
    on_disk.host_states = needs.kept_states;
    return on_disk;
  }
  const int64_t left =
      machine_bytes - promised - (loaded ? 0 : plan.host_weights) -
      (device.apart ? 0 : plan.DeviceBytes()) - plan.host_states -
      plan.host_distributions - needs.host_buffers - buffers;
  return PlanWithDisk(needs, device_bytes, std::min(HostRoom(), left));
}

Retrieval::Shape SessionSite::RetrievalShape(int64_t context) const {
  // Drafts only guess: a q8_0 view takes half the memory and guesses as well.
  KvLayout view_layout = layout;
  if (!retrieval->keeps_types && IsKvType(DType::kQ8_0, layout.head_dim)) {
    view_layout.type_k = view_layout.type_v = DType::kQ8_0;
  }
  HeadsOfRanks ranks = {.rank = rank};
  for (int i = 0; split != nullptr && i < split->ranks(); ++i) {
    ranks.kv_heads.push_back(split->kv_heads(i));
  }
  return {.layout = layout,
          .view_layout = view_layout,
          .layers = config.layers,
          .heads = QueryHeads(),
          .begin = first_position,
          .context = context,
          .size = *retrieval,
          .of_ranks = std::move(ranks)};
}

bool SessionSite::Fits(const TierPlan& plan) const {
  return plan.fits() && MachineBytes(plan) <= machine_bytes &&
         plan.host_kv <= HostRoom() && plan.disk_kv <= disk_bytes;
}

int64_t SessionSite::LargestContext(int64_t most) const {
  int64_t fits = 0;
  int64_t too_large = most + 1;
  while (too_large - fits > 1) {
    const int64_t middle = fits + (too_large - fits) / 2;
    (Fits(middle) ? fits : too_large) = middle;
  }
  return fits;
}

int64_t SessionSite::LeastDeviceBytes(int64_t context) const {
  SessionSite least = *this;
  least.device_bytes = 0;
  const TierPlan plan = least.PlanFor(context);
  return plan.DeviceBytes() + (device.in_place() ? plan.HostBytes() : 0);
}

absl::Status SessionSite::DoesNotFit(int64_t context, int64_t most) const {
  const TierPlan plan = PlanFor(context);
  const std::string who =
      split != nullptr && split->ranks() > 1
          ? absl::StrCat("rank ", rank, " of ", split->ranks(), ": ")
          : "";
  std::string best = absl::StrCat("; it can serve a context of ", most);
  SessionSite with_disk = *this;
  with_disk.disk_bytes = std::numeric_limits<int64_t>::max();
  if (disk_bytes == 0 && can_spill && with_disk.Fits(context)) {
    absl::StrAppend(&best,
                    ", and this one with pages on disk, where texts are kept "
                    "and the context is asked for");
  }
  const auto needs = [&](int64_t bytes, const std::string& where,
                         int64_t of_others) {
    const std::string others =
        of_others > 0 ? absl::StrCat(", ", of_others,
                                     " of it may be taken by sessions that are "
                                     "there")
                      : "";
    return MemoryError("does_not_fit",
                       absl::StrCat(who, "context ", context, " needs ", bytes,
                                    " bytes ", where, others, best));
  };
  if (!plan.fits()) {
    return needs(
        LeastDeviceBytes(context),
        absl::StrCat("of ", device.in_place() ? "memory" : "device memory",
                     " at least, the budget is ", device_bytes),
        device.in_place() ? promised : 0);
  }
  if (plan.disk_kv > disk_bytes) {
    return needs(
        plan.disk_kv,
        absl::StrCat("on disk beside what fits in memory, texts may take ",
                     disk_bytes),
        /*of_others=*/0);
  }
  if (plan.host_kv > HostRoom()) {
    const int64_t of_others = host_bytes - HostRoom();
    return needs(plan.host_kv + of_others,
                 absl::StrCat("of the host tier, the budget is ", host_bytes),
                 of_others);
  }
  return needs(MachineBytes(plan),
               absl::StrCat("of this machine's memory, ", machine_bytes,
                            " may be taken"),
               device.in_place() ? 0 : promised);
}

SessionSite SiteOf(const Model& model, const WeightSizes& weights,
                   const SessionOptions& options, int threads, int rank) {
  const Machine& machine = model.machine_of(rank);
  SessionSite site = {
      .config = model.config,
      .weights = weights,
      .layout = options.Layout(model.config),
      .first_position = options.first_position,
      .kept_first = options.kept_first,
      .kept_newest = options.kept_newest,
      .forks = options.forks,
      .fork_tokens = options.fork_tokens,
      .branches = options.branches,
      .draft_ahead = options.draft_ahead,
      .retrieval = options.retrieval,
      .extent = options.EndsPrompts() ? options.extent : std::nullopt,
      .threads = threads,
      .keeps_layers = options.KeepsPrompts(),
      .on_device = options.on_device,
      .device = machine.device().traits(),
      .split = &*model.split,
      .rank = rank};
  site.layout.kv_heads = static_cast<int>(model.split->kv_heads(rank).size());
  if (rank == 0) {
    site.distribution_bytes = options.distributions.Bytes(model.config.vocab);
    // The host reads logits, too.
    if (site.device.apart) {
      site.distribution_bytes += LogitRows() * model.config.vocab *
                                 static_cast<int64_t>(sizeof(float));
    }
  }
  if (const std::optional<LinkRate> link = machine.device().link();
      link.has_value()) {
    site.link_bytes_per_s = link->bytes_per_s;
    site.host_bytes_per_s = machine.device().host_bytes_per_s();
  }
  site.promised = PromisedBytesOn(machine);
  site.promised_kv = machine.kv_account()->promised();
  site.there = model.Workspaces()->Promised(static_cast<size_t>(rank));
  site.machine_bytes = machine.MemoryBudget();
  const std::optional<int64_t> host = machine.HostBudget();
  site.host_bytes = host.value_or(std::numeric_limits<int64_t>::max());
  site.can_spill = !options.on_device && options.prompt_view.IsFull() &&
                   !options.EndsPrompts() && options.first_position == 0;
  if (options.context > 0 && options.KeepsPrompts() &&
      !options.texts->unfinished_alone && site.can_spill) {
    site.disk_bytes =
        static_cast<int64_t>(std::min<uint64_t>(
            options.texts->most_bytes, std::numeric_limits<int64_t>::max())) /
        model.ranks();
  }
  // Free memory is read only once, since others may take some at any time.
  site.device_bytes =
      site.device.in_place() ? site.machine_bytes : machine.DeviceBudget();
  // A plan without weights, for a simulated device beside a host tier of a
  // given size, is for another machine than this.
  site.loaded = model.weights != nullptr;
  const bool elsewhere =
      !site.loaded && site.device.limited && host.has_value();
  if (elsewhere) site.machine_bytes = site.device_bytes + site.host_bytes;
  return site;
}

std::string ExtentWarning(const SessionSite& site, int64_t longest) {
  const bool misses_some = site.extent.has_value() &&
                           site.extent->full_layers < site.config.layers &&
                           site.extent->PositionsAbove() < longest;
  return misses_some ? site.extent->warning : "";
}

bool GoesToDisk(const Model& model, const SessionOptions& options) {
  if (options.context == 0 || !options.KeepsPrompts() ||
      !CheckSessionOptions(model.config, options).ok()) {
    return false;
  }
  const absl::StatusOr<std::vector<WeightSizes>> sizes = model.MeasureRanks();
  if (!sizes.ok()) return false;
  WeightSizes weights = sizes->front();
  const int64_t used = model.machine->memory().used();
  weights.bytes = model.weights != nullptr ? used : used + weights.bytes;
  const SessionSite site =
      SiteOf(model, weights, options, model.machine->threads());
  return site.PlanFor(options.context).shape.disk_pages > 0;
}

int64_t LargestContext(const std::vector<SessionSite>& sites, int64_t most) {
  for (const SessionSite& site : sites) most = site.LargestContext(most);
  return most;
}

SessionSite SessionSite::WithoutPolicy() const {
  SessionSite site = *this;
  site.kept_first = 0;
  site.kept_newest = 0;
  site.retrieval.reset();
  site.extent.reset();
  site.draft_bytes = 0;
  site.draft_ahead = false;
  return site;
}

std::string CrowdedBy(const std::vector<SessionSite>& sites, int64_t context) {
  const int64_t room = LargestContext(sites, context);
  std::vector<SessionSite> without;
  int64_t least = 0;
  for (const SessionSite& site : sites) {
    without.push_back(site.WithoutPolicy());
    least = std::max(least, site.LeastDeviceBytes(context));
  }
  const int64_t most = LargestContext(without, context);
  if (room >= most) return "";
  return absl::StrCat(
      "context: room for ", room,
      " tokens beside what the policy keeps on the device, for ", most,
      " without it; ", least, " bytes of device memory hold the model's ",
      context);
}

absl::Status CheckRanksFit(const std::vector<SessionSite>& sites,
                           int64_t context) {
  const auto lacks = std::find_if(
      sites.begin(), sites.end(),
      [&](const SessionSite& site) { return !site.Fits(context); });
  if (lacks == sites.end()) return absl::OkStatus();
  return lacks->DoesNotFit(
      context, LargestContext(sites, std::min(context, lacks->config.context)));
}

absl::StatusOr<std::vector<TierPlan>> PlanRanks(
    const std::vector<SessionSite>& sites, int64_t context) {
  if (context == 0) {
    context = LargestContext(sites, sites.front().config.context);
    if (context == 0) return CheckRanksFit(sites, 1);
  }
  RETURN_IF_ERROR(CheckRanksFit(sites, context));
  std::vector<TierPlan> plans;
  plans.reserve(sites.size());
  for (const SessionSite& site : sites) plans.push_back(site.PlanFor(context));
  return plans;
}

}  // namespace tiercel
