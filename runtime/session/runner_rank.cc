#include "runtime/session/runner_rank.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/cuda/nccl.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"
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
  } else if (CudaDriver::IsExecutor()) {
    return nullptr;  // NCCL knows no simulated GPU
  } else {
    functions = NcclFunctions::Load(kNcclLibrary);
  }
  if (!functions.ok()) return functions.status();
  std::vector<Stream*> queues;
  queues.reserve(streams.size());
  for (const auto& stream : streams) queues.push_back(stream.get());
  return NcclGather::Create(group, *functions, queues);
}

}  // namespace

absl::StatusOr<std::shared_ptr<RunnerRanks>> RunnerRanks::Create(
    const Model& model, const std::vector<std::unique_ptr<Stream>>& streams) {
  ASSIGN_OR_RETURN(std::unique_ptr<RankGroup> group,
                   RankGroup::Create(model.ranks()));
  auto ranks = std::make_shared<RunnerRanks>();
  ranks->group = std::move(group);
  if (model.ranks() > 1 && streams.front()->device() == DeviceKind::kCuda) {
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
    ranks->gather = std::make_unique<InProcessGather>(*ranks->group);
  }
  return ranks;
}

RunnerRank::RunnerRank(const Model& model, std::shared_ptr<const RankPlan> of,
                       std::unique_ptr<Stream> queue,
                       std::shared_ptr<RunnerRanks> ranks, int threads)
    : planned(std::move(of)),
      site(planned->site),
      plan(planned->plan),
      stream(std::move(queue)),
      model_(model),
      ranks_(std::move(ranks)),
      pass_rank_{*ranks_->group, site.rank, threads},
      decoder_(model.config, model.weights_of(site.rank), model.options.compute,
               model.machine_of(site.rank).memory(),
               {*model.split, site.rank, *ranks_->gather}),
      whole_(nullptr, model.config.hidden) {}

absl::StatusOr<std::unique_ptr<RunnerRank>> RunnerRank::Fork() const {
  ASSIGN_OR_RETURN(std::unique_ptr<Stream> queue, machine().NewStream());
  return std::make_unique<RunnerRank>(model_, planned, std::move(queue), ranks_,
                                      pass_rank_.threads);
}

// ---- Memory ----

WorkspaceSize RunnerRank::Needs() const {
  WorkspaceSize size = site.WorkspaceOf(plan.context);
  size.hidden = AlignedBytes(plan.state_rows * site.StateBytes());
  return size;
}

void RunnerRank::Use(Workspace::Rank workspace) {
  stream->UseScratch(std::move(workspace.scratch));
  decoder_.Use(std::move(workspace.decoder));
  hidden_ = std::move(workspace.hidden);
  logits = std::move(workspace.logits);
}

absl::Status RunnerRank::ReserveAll() {
  if (!plan.TakesAllAtFirst()) return absl::OkStatus();
  RETURN_IF_ERROR(decoder_.Reserve(site.RowsAtOnce(), plan.context));
  RETURN_IF_ERROR(FitHidden(plan.state_rows));
  RETURN_IF_ERROR(ReserveLogits());
  return stream->Scratch(static_cast<size_t>(site.Scratch(plan.context)))
      .status();
}

Workspace::Rank RunnerRank::Release() {
  if (tiles_ != nullptr && !tiles_->IsSuspended()) tiles_->EndStep();
  tiles_ = nullptr;
  return {.scratch = stream->ReleaseScratch(),
          .decoder = decoder_.Release(),
          .hidden = std::exchange(hidden_, {}),
          .logits = std::exchange(logits, {})};
}

// The rows of the last step are dropped when a new one begins.
absl::Status RunnerRank::ReserveHidden(RankKv& kv, int64_t rows) {
  kv.DropStates();
  const bool in_tiles = kv.tiles != nullptr && rows > plan.state_rows;
  tiles_ = in_tiles ? kv.tiles : nullptr;
  return FitHidden(in_tiles ? plan.state_rows : rows);
}

absl::Status RunnerRank::FitHidden(int64_t rows) {
  const int64_t size = rows * model_.config.hidden;
  if (static_cast<int64_t>(hidden_.size()) >= size) return absl::OkStatus();
  hidden_ = DeviceArray<float>();
  ASSIGN_OR_RETURN(hidden_, DeviceArray<float>::Create(machine().memory(), size,
                                                       "hidden states"));
  return absl::OkStatus();
}

absl::Status RunnerRank::ReserveLogits() {
  if (!logits.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(logits, DeviceArray<float>::Create(
                               machine().memory(),
                               LogitRows() * model_.config.vocab, "logits"));
  return absl::OkStatus();
}

// ---- Steps ----

absl::Status RunnerRank::Fill(RankKv& kv, int64_t rows, uint64_t seed,
                              PassProgress progress, Cancelled cancelled) {
  const FillPart part = {.rank = pass_rank_,
                         .kv_heads = model_.config.kv_heads,
                         .first_head = kv.first_head()};
  return FillKv(*kv.store, rows, seed, *stream, progress, cancelled,
                alone() ? nullptr : &part);
}

// Restricts a view with positions for each KV head to this rank's heads.
View RunnerRank::Own(const View& view) const {
  View own = view;
  if (view.selected.empty()) return own;
  const auto all = static_cast<size_t>(model_.config.kv_heads);
  const auto some = static_cast<size_t>(site.layout.kv_heads);
  const auto first_head =
      static_cast<size_t>(site.split->kv_heads(site.rank).begin);
  own.selected.clear();
  // Some of a list of the wrong size stays, and is refused later.
  for (size_t head = first_head; head + some <= view.selected.size();
       head += all) {
    const auto first = view.selected.begin() + static_cast<ptrdiff_t>(head);
    own.selected.insert(own.selected.end(), first,
                        first + static_cast<ptrdiff_t>(some));
  }
  return own;
}

absl::Status RunnerRank::BeginRows(KvStore& store, int64_t rows, Phase phase,
                                   const View& view, bool certain,
                                   Cancelled cancelled, KvStore::Agree agree) {
  return store.BeginStep(rows, phase, alone() ? view : Own(view), cancelled,
                         certain, agree);
}

absl::Status RunnerRank::Begin(const RankRows& rows, Phase phase,
                               const View& view, bool certain,
                               Cancelled cancelled,
                               absl::FunctionRef<absl::Status()> go_on) {
  phase_ = phase;
  RETURN_IF_ERROR(ReserveHidden(rows.kv, rows.count));
  if (tiles_ != nullptr) {
    RETURN_IF_ERROR(tiles_->BeginStep(rows.count, hidden_.data(), phase));
  }
  KvStore& store = *rows.kv.store;
  RETURN_IF_ERROR(BeginRows(store, rows.count, phase, view, certain, cancelled,
                            KvStore::kAgreed));
  RETURN_IF_ERROR(go_on());
  return decoder_.BeginStep(*stream, rows.count, store.end(),
                            phase == Phase::kPrefill, rows.kv.RopeLength());
}

absl::Status RunnerRank::Resume(const RankRows& rows, Cancelled cancelled) {
  RankKv::Parked& parked = rows.kv.parked;
  phase_ = Phase::kPrefill;
  tiles_ = rows.kv.tiles;
  if (parked.states.empty()) {
    RETURN_IF_ERROR(FitHidden(IsTiled() ? plan.state_rows : rows.count));
    RETURN_IF_ERROR(
        stream->Copy(States(), parked.copy.data(), parked.copy.bytes()));
  }
  const DevicePtr<std::byte> states =
      parked.states.empty() ? States() : parked.states.data().As<std::byte>();
  RETURN_IF_ERROR(rows.kv.store->Resume(states, cancelled));
  if (!parked.states.empty()) hidden_ = std::exchange(parked.states, {});
  if (IsTiled()) tiles_->Resume(hidden_.data());
  rows.kv.DropParked();
  return decoder_.BeginStep(*stream, rows.count, rows.kv.store->end(),
                            /*of_prompt=*/true, rows.kv.RopeLength());
}

absl::Status RunnerRank::RunLayers(const RankRows& rows, PassProgress progress,
                                   Cancelled cancelled, AfterLayer after,
                                   PassPoint* point) {
  KvStore& store = *rows.kv.store;
  KvStore::StepRows step = store.Step();
  whole_ = WholeStates(hidden_.data(), model_.config.hidden);
  const Pass pass = {
      .kv = store,
      .rows = rows.count,
      .before = store.length(),
      .layers = model_.config.layers,
      .deep = std::move(step.deep),
      .shallow_layers = step.shallow_layers,
      .weight_bytes_per_token = site.weights.MostPerToken(),
      .hidden = IsTiled() ? static_cast<HiddenStates&>(*tiles_) : whole_,
      .weights = {model_.streamed.get(), phase_, &streamed_use_},
      .ids = rows.ids,
      .seen_by = step.seen_by,
      .after_layer = after,
      .rank = alone() ? nullptr : &pass_rank_};
  return RunPass(pass, decoder_, *stream, progress, cancelled, point);
}

absl::StatusOr<SequenceStep> RunnerRank::BeginJoint(const JointStep& step,
                                                    Cancelled cancelled) {
  const SequenceRows& rows = step.rows;
  const StepKind& kind = step.kind;
  RankKv& kv = *rows.kv.ranks()[static_cast<size_t>(site.rank)];
  KvStore& store = *kv.store;
  kv.DropStates();
  if (!kind.IsDraft()) {
    const auto agree = [this](const absl::Status& mine) {
      return ranks_->group->Meet(site.rank, mine);
    };
    const absl::Status begun =
        BeginRows(store, rows.count, kind.phase, rows.view, step.certain,
                  cancelled, agree);
    const absl::Status all = agree(begun);
    if (begun.ok() && !all.ok()) store.Abandon();
    RETURN_IF_ERROR(all);
  }
  const int layers = std::min(kind.layers, model_.config.layers);
  if (kind.over == StepKind::Over::kPages) {
    KvStore::StepRows own = store.Step();
    return SequenceStep{.kv = store,
                        .rows = rows.count,
                        .ids = rows.ids,
                        .position = store.end(),
                        .layers = layers,
                        .rope_length = kv.RopeLength(),
                        .deep = std::move(own.deep),
                        .shallow_layers = own.shallow_layers,
                        .seen_by = own.seen_by,
                        .before_layer = step.before_layer};
  }
  Retrieval& retrieval = *kv.retrieval;
  CompactKv& view = retrieval.kv();
  const std::optional<BranchPlace>& branch = kind.branch;
  LayeredKv& drafted = branch.has_value() ? retrieval.Branch(*branch) : view;
  SequenceStep own = {
      .kv = drafted,
      .rows = rows.count,
      .ids = rows.ids,
      .position = branch ? branch->at + branch->rows : view.end(),
      .layers = layers,
      .rope_length = kv.RopeLength()};
  own.before_layer = [this, before = step.before_layer, cancelled,
                      &retrieval](int layer) {
    if (before) RETURN_IF_ERROR(before(layer));
    return retrieval.Await(*stream, layer, cancelled);
  };
  if (kind.over == StepKind::Over::kBoth) {
    retrieval.BeginViewStep(view.end());
    own.seen_by = &retrieval;
    own.copied_to = &store;
  }
  return own;
}

absl::Status RunnerRank::PassTogether(absl::Span<JointStep> steps,
                                      Cancelled cancelled) {
  phase_ = steps.front().kind.phase;  // weights count as the first's
  tiles_ = nullptr;
  std::vector<SequenceStep> begun;
  std::vector<JointStep*> whose;  // [sequence that has begun]
  std::vector<bool> begins(steps.size(), false);
  int64_t rows = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    JointStep& step = steps[i];
    const bool may =
        step.beside == 0 || begins[i - static_cast<size_t>(step.beside)];
    absl::StatusOr<SequenceStep> own =
        may ? BeginJoint(step, cancelled)
            : MemoryError("out_of_memory", "the step beside it does not begin");
    begins[i] = own.ok();
    if (site.rank == 0) {
      step.status = own.status();
      step.waits =
          ClassOf(step.status) == ErrorClass::kMemory && !begun.empty();
    }
    if (!own.ok()) continue;
    begun.push_back(*std::move(own));
    whose.push_back(&step);
    rows += step.rows.count;
  }
  if (begun.empty()) return absl::OkStatus();
  absl::Status status = FitHidden(rows);
  if (status.ok()) {
    status =
        RunStep({.sequences = absl::MakeSpan(begun),
                 .hidden = hidden_.data(),
                 .weights = {model_.streamed.get(), phase_, &streamed_use_},
                 .rank = alone() ? nullptr : &pass_rank_},
                decoder_, *stream, cancelled);
  }
  // Sequences that go on may begin other steps before those that failed do.
  for (size_t i = 0; i < begun.size(); ++i) {
    JointStep& step = *whose[i];
    if (site.rank == 0) {
      step.status = begun[i].status;
      step.last_row = begun[i].last_row;
    }
    const bool failed = !status.ok() || !begun[i].status.ok();
    if (failed && !step.kind.IsDraft()) {
      step.rows.kv.ranks()[static_cast<size_t>(site.rank)]->store->Abandon();
    }
  }
  return status;
}

absl::Status RunnerRank::Suspend(RankKv& kv, int64_t rows,
                                 const PassPoint& point, bool others) {
  if (IsTiled()) {
    RETURN_IF_ERROR(tiles_->Suspend());
  }
  const int64_t bytes = StateBytes(rows);
  const bool stays = machine().device().in_place();
  RETURN_IF_ERROR(
      kv.store->Suspend(point.layer, point.row, States(), stays ? 0 : bytes));
  if (!stays && kv.tier != nullptr) return absl::OkStatus();
  MemoryPromise promise(machine().account(), 0);
  if (!stays || others) {
    RETURN_IF_ERROR(promise.Grow(bytes, "a prompt that is stopped"));
  }
  if (stays) {
    kv.parked.states = std::exchange(hidden_, {});
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(HostRegion copy,
                   HostRegion::Reserve(static_cast<size_t>(bytes)));
  absl::Status status =
      stream->Copy(copy.data(), States(), static_cast<size_t>(bytes));
  if (status.ok()) status = stream->Synchronize();
  if (!status.ok()) return status;
  promise.NoteWritten(bytes);
  kv.parked.copy = std::move(copy);
  kv.parked.promise = std::move(promise);
  return absl::OkStatus();
}

// Bytes of a step's hidden states that the store keeps: none if they are in
// tiles.
int64_t RunnerRank::StateBytes(int64_t rows) const {
  return IsTiled() ? 0 : rows * site.StateBytes();
}

absl::StatusOr<std::unique_ptr<HeldLayer>> RunnerRank::HoldLayer(
    RankKv& kv, int64_t rows, int layer, Cancelled cancelled) {
  std::shared_ptr<const HostRegion> states;
  if (IsTiled()) {
    ASSIGN_OR_RETURN(states, tiles_->Hold(layer, cancelled));
  }
  auto held = kv.store->HoldLayer(layer, States(), StateBytes(rows), cancelled);
  if (held.ok() && IsTiled()) {
    (*held)->SetState(std::move(states), tiles_->StepBytes());
  }
  return held;
}

absl::StatusOr<int> RunnerRank::TakeLayers(RankKv& kv, int64_t rows,
                                           KvStore::GiveLayers give,
                                           Cancelled cancelled) {
  const auto in_tiles = [&](KvStore::PutPage put, KvStore::PutState) {
    return give(put,
                [this](int64_t offset, const std::byte* from, size_t bytes) {
                  return tiles_->Put(offset, from, bytes);
                });
  };
  return IsTiled() ? kv.store->TakeLayers(in_tiles, States(), 0, cancelled)
                   : kv.store->TakeLayers(give, States(), StateBytes(rows),
                                          cancelled);
}

absl::Status RunnerRank::LogitsInto(int64_t first, int64_t count, int64_t row) {
  RETURN_IF_ERROR(ReserveLogits());
  DevicePtr<const float> rows = hidden_.data() + first * model_.config.hidden;
  if (IsTiled()) {
    ASSIGN_OR_RETURN(rows, tiles_->Rows(first, count));
  }
  return decoder_.Logits(*stream, rows, count,
                         logits.data() + row * model_.config.vocab);
}

}  // namespace tiercel
