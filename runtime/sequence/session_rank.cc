#include "runtime/sequence/session_rank.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/machine/cuda_stream.h"
#include "kernels/machine/nccl.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
#include "offload/kv/in_place_kv.h"
#include "offload/kv/tiered_kv.h"
#include "offload/ranks/nccl_gather.h"
#include "runtime/pass/fill.h"

namespace tiercel {
namespace {

// Returns null if GPUs are to gather without NCCL. Errors: those of
// NcclGather::Create and NcclFunctions::Load.
absl::StatusOr<std::unique_ptr<Gather>> GatherByNccl(
    const Model& model, RankGroup& group,
    const std::vector<std::unique_ptr<Stream>>& streams) {
  absl::StatusOr<NcclFunctions> functions = NcclFunctions();
  if (model.machine->nccl().has_value()) {
    functions = *model.machine->nccl();
  } else if (CudaStream::IsSimulated()) {
    return nullptr;  // NCCL knows no simulated GPU
  } else {
    functions = NcclFunctions::Load(kNcclLibrary);
  }
  if (!functions.ok()) return functions.status();
  std::vector<Stream*> queues;
  for (const auto& stream : streams) queues.push_back(stream.get());
  return NcclGather::Create(group, *functions, queues, model.machine->faults());
}

}  // namespace

absl::StatusOr<std::shared_ptr<SessionRanks>> SessionRanks::Create(
    const Model& model, const std::vector<std::unique_ptr<Stream>>& streams) {
  ASSIGN_OR_RETURN(std::unique_ptr<RankGroup> group,
                   RankGroup::Create(model.ranks()));
  auto ranks = std::make_shared<SessionRanks>();
  ranks->group = std::move(group);
  if (model.ranks() > 1 && !streams.front()->on_host()) {
    ASSIGN_OR_RETURN(const NcclUse use, NcclFromEnvironment());
    absl::StatusOr<std::unique_ptr<Gather>> gather = nullptr;
    if (use != NcclUse::kNever) {
      gather = GatherByNccl(model, *ranks->group, streams);
    }
    if (gather.ok()) {
      ranks->gather = *std::move(gather);
    } else if (use == NcclUse::kAlways) {
      return Annotate(gather.status(), "TIERCEL_NCCL=1");
    } else {
      // A lost GPU is an error, not a reason to do without NCCL.
      for (int rank = 0; rank < model.ranks(); ++rank) {
        RETURN_IF_ERROR(model.machine_of(rank).FindDevice());
      }
      ranks->warning = absl::StrCat(
          "ranks gather by copies from GPU to GPU, which is slower: ",
          gather.status().message());
    }
  }
  if (ranks->gather == nullptr) {
    ranks->gather = std::make_unique<InProcessGather>(*ranks->group,
                                                      model.machine->faults());
  }
  return ranks;
}

SessionRank::SessionRank(const Model& model, const SessionSite& of,
                         const TierPlan& planned, std::unique_ptr<Stream> queue,
                         std::shared_ptr<SessionRanks> ranks, int threads)
    : site(of),
      plan(planned),
      stream(std::move(queue)),
      model_(model),
      ranks_(std::move(ranks)),
      pass_rank_{*ranks_->group, of.rank, threads},
      decoder_(model.config, model.weights_of(of.rank), model.options.compute,
               model.machine_of(of.rank).memory(),
               {*model.split, of.rank, *ranks_->gather}),
      whole_(nullptr, model.config.hidden) {}

// ---- Memory ----

absl::Status SessionRank::MakeKv(const PromptCacheFolder* texts) {
  const int64_t first_position = site.first_position;
  DeviceMemory& memory = machine().memory();
  const std::shared_ptr<MemoryAccount>& account = machine().account();
  promise_ = std::make_shared<MemoryPromise>(account, 0);
  NotePromise();
  if (!IsPlanned()) {
    auto pool = std::make_shared<PagePool>(plan.shape.layout, plan.shape.layers,
                                           plan.context / kPageTokens + 2);
    pool->Promise(MemoryPromise(machine().kv_account(), plan.host_kv),
                  plan.shape.context_pages);
    kv = std::make_unique<InPlaceKv>(std::move(pool), first_position);
  } else {
    RETURN_IF_ERROR(ReserveShares());
    if (plan.on_device) {
      ASSIGN_OR_RETURN(PagePool pool,
                       PagePool::OnDevice(plan.shape.layout, plan.shape.layers,
                                          plan.shape.context_pages, memory));
      if (!site.on_gpu) {
        pool.Promise(
            MemoryPromise(account, plan.resident, MemoryPromise::Kind::kTaken),
            plan.shape.context_pages);
      }
      kv = std::make_unique<InPlaceKv>(
          std::make_shared<PagePool>(std::move(pool)), first_position);
    } else {
      placement = machine().NewPlacement();
      ASSIGN_OR_RETURN(std::unique_ptr<Link> link,
                       machine().NewLink(placement));
      std::shared_ptr<PageFile> spill;
      if (plan.shape.disk_pages > 0) {
        ASSIGN_OR_RETURN(const int file, texts->Folder().OpenNameless());
        spill = std::make_shared<PageFile>(
            texts->Disk(), file, texts->path + ": pages of a session",
            plan.shape.layout, plan.shape.layers, plan.shape.context_pages + 2);
      }
      ASSIGN_OR_RETURN(
          tier,
          KvTier::Create(plan.shape, memory, std::move(link), std::move(spill),
                         MemoryPromise(machine().kv_account(), plan.host_kv)));
      if (!site.on_gpu) {
        tier->on_device = MemoryPromise(account, plan.resident + plan.staging,
                                        MemoryPromise::Kind::kTaken);
      }
      MakeTiles();
      kv = std::make_unique<TieredKv>(tier, first_position);
    }
  }
  if (!site.retrieval.has_value()) return absl::OkStatus();
  Retrieval::Shape shape = site.RetrievalShape(plan.context);
  shape.of_ranks.gather = ranks_->gather.get();
  ASSIGN_OR_RETURN(retrieval, Retrieval::Create(memory, shape, *kv));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SessionRank>> SessionRank::Fork() const {
  ASSIGN_OR_RETURN(std::unique_ptr<Stream> queue, machine().NewStream());
  ASSIGN_OR_RETURN(std::unique_ptr<KvStore> forked, kv->Fork());
  auto copy = std::make_unique<SessionRank>(
      model_, site, plan, std::move(queue), ranks_, pass_rank_.threads);
  copy->kv = std::move(forked);
  if (retrieval != nullptr) {
    ASSIGN_OR_RETURN(copy->retrieval, retrieval->Fork(*copy->kv));
  }
  copy->placement = placement;
  copy->tier = tier;
  copy->shares = shares;
  copy->promise_ = promise_;
  copy->MakeTiles();
  return copy;
}

void SessionRank::MakeTiles() {
  if (tier == nullptr || plan.state_rows == plan.context) return;
  tiles = std::make_unique<TiledStates>(tier, model_.config.hidden,
                                        plan.state_rows / TiledStates::kTiles);
}

WorkspaceSize SessionRank::Needs() const {
  WorkspaceSize size = site.WorkspaceOf(plan.context);
  size.hidden = AlignedBytes(plan.state_rows * site.StateBytes());
  return size;
}

void SessionRank::Use(Workspace::Rank workspace) {
  stream->UseScratch(std::move(workspace.scratch));
  decoder_.Use(std::move(workspace.decoder));
  hidden = std::move(workspace.hidden);
  logits = std::move(workspace.logits);
}

absl::Status SessionRank::ReserveAll() {
  if (!IsPlanned()) return absl::OkStatus();
  RETURN_IF_ERROR(decoder_.Reserve(site.RowsAtOnce(), plan.context));
  RETURN_IF_ERROR(FitHidden(plan.state_rows));
  RETURN_IF_ERROR(ReserveLogits());
  return stream->Scratch(static_cast<size_t>(site.Scratch(plan.context)))
      .status();
}

Workspace::Rank SessionRank::Release() {
  if (tiles != nullptr && !tiles->IsSuspended()) tiles->EndStep();
  return {.scratch = stream->ReleaseScratch(),
          .decoder = decoder_.Release(),
          .hidden = std::exchange(hidden, {}),
          .logits = std::exchange(logits, {})};
}

// The rows of the last step are dropped when a new one begins.
absl::Status SessionRank::ReserveHidden(int64_t rows) {
  if (tiles != nullptr) tiles->EndStep();
  DropParked();
  return FitHidden(GoesInTiles(rows) ? plan.state_rows : rows);
}

absl::Status SessionRank::FitHidden(int64_t rows) {
  const int64_t size = rows * model_.config.hidden;
  if (static_cast<int64_t>(hidden.size()) >= size) return absl::OkStatus();
  hidden = DeviceArray<float>();
  ASSIGN_OR_RETURN(hidden, DeviceArray<float>::Create(machine().memory(), size,
                                                      "hidden states"));
  return absl::OkStatus();
}

absl::Status SessionRank::ReserveLogits() {
  if (!logits.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(logits, DeviceArray<float>::Create(
                               machine().memory(),
                               LogitRows() * model_.config.vocab, "logits"));
  return absl::OkStatus();
}

absl::Status SessionRank::ReserveShares() {
  if (shares != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(shares,
                   AttentionShares::Create(machine().memory(),
                                           site.SharesShape(plan.context)));
  NotePromise();
  return absl::OkStatus();
}

void SessionRank::NotePromise() {
  int64_t bytes = plan.host_states + plan.disk_buffers;
  if (!IsPlanned() && shares == nullptr) {
    bytes += site.SharesShape(plan.context).Bytes();
  }
  promise_->Resize(bytes);
}

KvMoves SessionRank::moves() const {
  KvMoves moves = kv->moves();
  if (tiles == nullptr) return moves;
  moves.states_up_bytes = tiles->up_bytes();
  moves.states_down_bytes = tiles->down_bytes();
  return moves;
}

RankTraffic SessionRank::traffic() const {
  RankTraffic traffic = {.gathered_bytes = ranks_->gather->received(site.rank),
                         .moves = moves()};
  if (tier == nullptr) return traffic;
  for (const LinkUse& use : tier->engine->ledger()) {
    traffic.h2d_bytes += use.h2d_bytes;
    traffic.d2h_bytes += use.d2h_bytes;
  }
  return traffic;
}

// ---- Steps ----

absl::Status SessionRank::Fill(int64_t rows, uint64_t seed,
                               PassProgress progress, Cancelled cancelled) {
  const FillPart part = {.rank = pass_rank_,
                         .kv_heads = model_.config.kv_heads,
                         .first_head = first_head()};
  return FillKv(*kv, rows, seed, *stream, progress, cancelled,
                alone() ? nullptr : &part);
}

// Restricts a view with positions for each KV head to this rank's heads.
View SessionRank::Own(const View& view) const {
  View own = view;
  if (view.selected.empty()) return own;
  const auto all = static_cast<size_t>(model_.config.kv_heads);
  const auto some = static_cast<size_t>(site.layout.kv_heads);
  own.selected.clear();
  // Some of a list of the wrong size stays, and is refused later.
  for (size_t head = static_cast<size_t>(first_head());
       head + some <= view.selected.size(); head += all) {
    const auto first = view.selected.begin() + static_cast<ptrdiff_t>(head);
    own.selected.insert(own.selected.end(), first,
                        first + static_cast<ptrdiff_t>(some));
  }
  return own;
}

absl::Status SessionRank::BeginForward(
    int64_t rows, Phase phase, const View& view, bool certain,
    Cancelled cancelled, absl::FunctionRef<absl::Status()> go_on) {
  absl::Status status = ReserveHidden(rows);
  if (status.ok() && GoesInTiles(rows)) {
    status = tiles->BeginStep(rows, hidden.data(), phase);
  }
  if (!status.ok()) return status;
  status = alone() ? kv->BeginStep(rows, phase, view, cancelled, certain)
                   : kv->BeginStep(rows, phase, Own(view), cancelled, certain);
  if (status.ok()) status = go_on();
  if (!status.ok()) return status;
  return decoder_.BeginStep(*stream, rows, kv->end());
}

absl::Status SessionRank::Resume(int64_t rows, Cancelled cancelled) {
  if (parked_.empty()) {
    absl::Status status = FitHidden(IsTiled() ? plan.state_rows : rows);
    if (status.ok()) {
      status =
          stream->Copy(States(), parked_copy_.data(), parked_copy_.bytes());
    }
    if (!status.ok()) return status;
  }
  std::byte* const states =
      parked_.empty() ? States() : reinterpret_cast<std::byte*>(parked_.data());
  RETURN_IF_ERROR(kv->Resume(states, cancelled));
  if (!parked_.empty()) hidden = std::exchange(parked_, {});
  if (IsTiled()) tiles->Resume(hidden.data());
  DropParked();
  return decoder_.BeginStep(*stream, rows, kv->end());
}

Pass SessionRank::PassOf(LayeredKv& layers_of, const int32_t* ids, int64_t rows,
                         int64_t before) {
  whole_ = WholeStates(hidden.data(), model_.config.hidden);
  return {.kv = layers_of,
          .rows = rows,
          .before = before,
          .layers = model_.config.layers,
          .weight_bytes_per_token = site.weights.MostPerToken(),
          .hidden = IsTiled() ? static_cast<HiddenStates&>(*tiles) : whole_,
          .ids = ids,
          .rank = alone() ? nullptr : &pass_rank_};
}

namespace {

// A store that calls `after` as each layer ends.
class ToldKv final : public LayeredKv {
 public:
  ToldKv(LayeredKv& kv, absl::FunctionRef<void(int)> after)
      : kv_(kv), after_(after) {}

  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override {
    return kv_.BeginLayer(layer, cancelled);
  }
  void EndLayer(int layer) override {
    kv_.EndLayer(layer);
    after_(layer);
  }

 private:
  LayeredKv& kv_;
  const absl::FunctionRef<void(int)> after_;
};

}  // namespace

absl::Status SessionRank::RunLayers(const int32_t* ids, int64_t rows,
                                    PassProgress progress, Cancelled cancelled,
                                    absl::FunctionRef<void(int)> after,
                                    PassPoint* point) {
  ToldKv told(*kv, after);
  Pass pass = PassOf(told, ids, rows, kv->length());
  pass.deep = kv->StepDeepRows();
  pass.shallow_layers = kv->StepShallowLayers();
  pass.seen_by = kv->StepSeenBy();
  return RunPass(pass, decoder_, *stream, progress, cancelled, point);
}

absl::Status SessionRank::Suspend(int64_t rows, const PassPoint& point,
                                  bool others) {
  if (IsTiled()) {
    RETURN_IF_ERROR(tiles->Suspend());
  }
  const int64_t bytes = StateBytes(rows);
  const bool stays = machine().in_place();
  RETURN_IF_ERROR(
      kv->Suspend(point.layer, point.row, States(), stays ? 0 : bytes));
  if (!stays && tier != nullptr) return absl::OkStatus();
  MemoryPromise promise(machine().account(), 0);
  if (!stays || others) {
    RETURN_IF_ERROR(promise.Grow(bytes, "a prompt that is stopped"));
  }
  if (stays) {
    parked_ = std::exchange(hidden, {});
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(HostRegion copy,
                   HostRegion::Reserve(static_cast<size_t>(bytes)));
  absl::Status status =
      stream->Copy(copy.data(), States(), static_cast<size_t>(bytes));
  if (status.ok()) status = stream->Synchronize();
  if (!status.ok()) return status;
  promise.NoteWritten(bytes);
  parked_copy_ = std::move(copy);
  parked_promise_ = std::move(promise);
  return absl::OkStatus();
}

void SessionRank::DropParked() {
  parked_ = {};
  parked_copy_ = {};
  parked_promise_ = {};
}

// Bytes of a step's hidden states that the store keeps: none if they are in
// tiles.
int64_t SessionRank::StateBytes(int64_t rows) const {
  return IsTiled() ? 0 : rows * site.StateBytes();
}

absl::StatusOr<std::unique_ptr<HeldLayer>> SessionRank::HoldLayer(
    int64_t rows, int layer, Cancelled cancelled) {
  std::shared_ptr<const HostRegion> states;
  if (IsTiled()) {
    ASSIGN_OR_RETURN(states, tiles->Hold(layer, cancelled));
  }
  auto held = kv->HoldLayer(layer, States(), StateBytes(rows), cancelled);
  if (held.ok() && IsTiled()) {
    (*held)->SetState(std::move(states), tiles->StepBytes());
  }
  return held;
}

absl::StatusOr<int> SessionRank::TakeLayers(int64_t rows,
                                            KvStore::GiveLayers give,
                                            Cancelled cancelled) {
  const auto in_tiles = [&](KvStore::PutPage put, KvStore::PutState) {
    return give(put,
                [this](int64_t offset, const std::byte* from, size_t bytes) {
                  return tiles->Put(offset, from, bytes);
                });
  };
  return IsTiled()
             ? kv->TakeLayers(in_tiles, States(), 0, cancelled)
             : kv->TakeLayers(give, States(), StateBytes(rows), cancelled);
}

absl::Status SessionRank::LogitsInto(int64_t first, int64_t count, size_t row) {
  RETURN_IF_ERROR(ReserveLogits());
  const float* rows = hidden.data() + first * model_.config.hidden;
  if (IsTiled()) {
    ASSIGN_OR_RETURN(rows, tiles->Rows(first, count));
  }
  return decoder_.Logits(
      *stream, rows, count,
      logits.data() + row * static_cast<size_t>(model_.config.vocab));
}

namespace {

// A view's KV for drafts, which waits until a layer has arrived.
class ArrivedKv final : public LayeredKv {
 public:
  ArrivedKv(Retrieval& view, Stream& stream) : view_(view), stream_(stream) {}

  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override {
    RETURN_IF_ERROR(view_.Await(stream_, layer, cancelled));
    return view_.kv().BeginLayer(layer, cancelled);
  }
  void EndLayer(int layer) override { view_.kv().EndLayer(layer); }

 private:
  Retrieval& view_;
  Stream& stream_;
};

}  // namespace

absl::Status SessionRank::DraftForward(const int32_t* ids, int64_t rows,
                                       int layers, Cancelled cancelled) {
  RETURN_IF_ERROR(ReserveHidden(rows));
  CompactKv& view = retrieval->kv();
  RETURN_IF_ERROR(decoder_.BeginStep(*stream, rows, view.end()));
  ArrivedKv arrived(*retrieval, *stream);
  Pass pass = PassOf(arrived, ids, rows, view.end() - kv->begin());
  pass.layers = layers;
  PassPoint point;
  return RunPass(
      pass, decoder_, *stream, [](uint64_t, uint64_t) { return true; },
      cancelled, &point);
}

namespace {

// The KV of a step over a view: it reads and writes the view, and copies the
// one row that it adds to the store.
class KeptKv final : public LayeredKv {
 public:
  KeptKv(ArrivedKv& view, KvStore& store, Stream& stream)
      : view_(view), store_(store), stream_(stream) {}

  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override {
    const absl::StatusOr<KvPages> kept = store_.BeginLayer(layer, cancelled);
    if (!kept.ok()) return kept;
    kept_ = *kept;
    const absl::StatusOr<KvPages> seen = view_.BeginLayer(layer, cancelled);
    if (seen.ok()) seen_ = *seen;
    return seen;
  }
  void EndLayer(int layer) override {
    const std::byte* const from =
        seen_.pages[seen_.end / kPageTokens - seen_.first_page];
    std::byte* const to =
        kept_.pages[kept_.end / kPageTokens - kept_.first_page];
    const auto seen = static_cast<int>(seen_.end % kPageTokens);
    const auto kept = static_cast<int>(kept_.end % kPageTokens);
    const KvLayout& layout = kept_.layout;
    for (int head = 0; head < layout.kv_heads; ++head) {
      status_.Update(stream_.Copy(to + layout.KOffset(head, kept),
                                  from + layout.KOffset(head, seen),
                                  static_cast<size_t>(layout.KRowBytes())));
      status_.Update(stream_.Copy(to + layout.VOffset(head, kept),
                                  from + layout.VOffset(head, seen),
                                  static_cast<size_t>(layout.VRowBytes())));
    }
    view_.EndLayer(layer);
    store_.EndLayer(layer);
  }
  const absl::Status& status() const { return status_; }

 private:
  ArrivedKv& view_;
  KvStore& store_;
  Stream& stream_;
  KvPages seen_ = {};
  KvPages kept_ = {};
  absl::Status status_;
};

}  // namespace

absl::Status SessionRank::ViewStep(int32_t id, Phase phase,
                                   Cancelled cancelled) {
  const int64_t before = kv->length();
  const View row = View::Window(/*sinks=*/0, /*recent=*/1);
  CompactKv& view = retrieval->kv();
  RETURN_IF_ERROR(ReserveHidden(1));
  RETURN_IF_ERROR(kv->BeginStep(1, phase, row, cancelled));
  RETURN_IF_ERROR(decoder_.BeginStep(*stream, 1, view.end()));
  retrieval->BeginViewStep(view.end());
  ArrivedKv arrived(*retrieval, *stream);
  KeptKv both(arrived, *kv, *stream);
  Pass pass = PassOf(both, &id, 1, before);
  pass.seen_by = retrieval.get();
  PassPoint point;
  absl::Status status = RunPass(
      pass, decoder_, *stream, [](uint64_t, uint64_t) { return true; },
      cancelled, &point);
  status.Update(both.status());
  return status;
}

}  // namespace tiercel
