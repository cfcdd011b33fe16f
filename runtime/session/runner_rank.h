#ifndef TIERCEL_RUNTIME_SESSION_RUNNER_RANK_H_
#define TIERCEL_RUNTIME_SESSION_RUNNER_RANK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/device/device_memory.h"
#include "models/decoder/decoder.h"
#include "offload/kv/kv_store.h"
#include "offload/kv/tiled_states.h"
#include "offload/ranks/gather.h"
#include "runtime/model/model.h"
#include "runtime/pass/pass.h"
#include "runtime/pass/step.h"
#include "runtime/plan/session_plan.h"
#include "runtime/plan/tier_plan.h"
#include "runtime/session/rank_kv.h"
#include "runtime/session/shared_passes.h"

namespace tiercel {

// The means by which the ranks of a runner and its forks work together.
struct RunnerRanks {
  // GPUs gather by NCCL; if it is not available they copy, with a warning.
  // `streams`: one of each rank's, used in this call alone. Errors: no_thread;
  // invalid_environment; device_lost; if TIERCEL_NCCL=1 asks for NCCL, its
  // errors.
  static absl::StatusOr<std::shared_ptr<RunnerRanks>> Create(
      const Model& model, const std::vector<std::unique_ptr<Stream>>& streams);

  std::unique_ptr<RankGroup> group;
  std::unique_ptr<Gather> gather;
  std::string warning;  // losses that cost speed alone; empty: none
};

// Rows of one sequence as one rank passes them: they follow what `kv` holds.
struct RankRows {
  RankKv& kv;
  const int32_t* ids;  // [count]
  int64_t count;
};

// A runner's part on one rank: it passes rows through that rank's part of the
// model. The runner calls all of its ranks, each in its part of a
// RankGroup::Run.
class RunnerRank {
 public:
  using Cancelled = KvStore::Cancelled;

  // `threads`: one rank's.
  RunnerRank(const Model& model, std::shared_ptr<const RankPlan> planned,
             std::unique_ptr<Stream> stream, std::shared_ptr<RunnerRanks> ranks,
             int threads);
  // Makes another on the same rank, with a stream of its own. Errors: those of
  // Machine::NewStream.
  absl::StatusOr<std::unique_ptr<RunnerRank>> Fork() const;

  // ---- Parts of a step ----

  // Begins a step over `view`: makes room, then calls `go_on`, which may load
  // finished layers (TakeLayers). `certain`: all rows will be kept.
  absl::Status Begin(const RankRows& rows, Phase phase, const View& view,
                     bool certain, Cancelled cancelled,
                     absl::FunctionRef<absl::Status()> go_on);
  // Goes on with a step that was stopped, instead of beginning one.
  absl::Status Resume(const RankRows& rows, Cancelled cancelled);
  // Passes the rows through all layers, from `point` on; `after` is called
  // after each layer.
  absl::Status RunLayers(const RankRows& rows, PassProgress progress,
                         Cancelled cancelled, AfterLayer after,
                         PassPoint* point);
  // Parks the finished part of a step outside the workspace, with `kv`.
  // `others`: other sessions may compute in the workspace meanwhile. Errors:
  // also out_of_memory.
  absl::Status Suspend(RankKv& kv, int64_t rows, const PassPoint& point,
                       bool others);
  // KvStore::HoldLayer, with the hidden states of the step's `rows` rows, or
  // without; and KvStore::TakeLayers, for a step that has begun.
  absl::StatusOr<std::unique_ptr<HeldLayer>> HoldLayer(RankKv& kv, int64_t rows,
                                                       int layer,
                                                       Cancelled cancelled);
  absl::StatusOr<std::unique_ptr<HeldLayer>> HoldPages(RankKv& kv, int layer,
                                                       Cancelled cancelled) {
    return kv.store->HoldLayer(layer, States(), /*bytes=*/0, cancelled);
  }
  absl::StatusOr<int> TakeLayers(RankKv& kv, int64_t rows,
                                 KvStore::GiveLayers give, Cancelled cancelled);

  // Passes the rows of several sequences. A step for which memory has no room
  // beside those before it waits, and changes nothing, as does one beside a
  // step that does not begin; one that fails is abandoned. Rank 0 notes how
  // each has ended. Errors that all share: those of RunStep; out_of_memory.
  absl::Status PassTogether(absl::Span<JointStep> steps, Cancelled cancelled);

  // Writes the logits of `count` rows of the last step, from row `first` on,
  // into row `row` of `logits` and those after it. Errors: out_of_memory, and
  // those of the ops.
  absl::Status LogitsInto(int64_t first, int64_t count, int64_t row);

  // FillKv for the rank's heads.
  absl::Status Fill(RankKv& kv, int64_t rows, uint64_t seed,
                    PassProgress progress, Cancelled cancelled);

  // ---- Memory ----

  // The size of the workspace that its calls need.
  WorkspaceSize Needs() const;
  // Computes in `workspace` until Release, and allocates what it lacks there.
  void Use(Workspace::Rank workspace);
  Workspace::Rank Release();
  // Allocates all that a call needs, if memory is planned. Errors:
  // out_of_memory.
  absl::Status ReserveAll();
  absl::Status ReserveLogits();

  Machine& machine() const { return model_.machine_of(site.rank); }
  // Returns true if there is no other rank, so that a call may stop half-way.
  bool alone() const { return model_.ranks() == 1; }

  // The link's use for weights that came to the device for its passes.
  const LinkLedger& streamed_use() const { return streamed_use_; }

  const std::shared_ptr<const RankPlan> planned;
  const SessionSite& site;  // these are its parts
  const TierPlan& plan;
  const std::unique_ptr<Stream> stream;
  // Part of the workspace: [1 + kMaxStepRows, vocab], the logits of the token
  // after the last, if known, then those of some rows. Empty: not needed yet.
  DeviceArray<float> logits;

 private:
  View Own(const View& view) const;
  // KvStore::BeginStep over this rank's part of `view`.
  absl::Status BeginRows(KvStore& store, int64_t rows, Phase phase,
                         const View& view, bool certain, Cancelled cancelled,
                         KvStore::Agree agree);
  const Weights& weights() const { return model_.weights_of(site.rank); }
  // Makes room for a step, unless it is a draft, which has it. Errors: those of
  // KvStore::BeginStep, the same on all ranks.
  absl::StatusOr<SequenceStep> BeginJoint(const JointStep& step,
                                          Cancelled cancelled);
  // Makes room for a step, whose hidden states are in tiles if the plan does
  // not have all of them on the device.
  absl::Status ReserveHidden(RankKv& kv, int64_t rows);
  absl::Status FitHidden(int64_t rows);
  // Returns true if the last step's rows are in tiles.
  bool IsTiled() const { return tiles_ != nullptr && tiles_->HasStep(); }
  int64_t StateBytes(int64_t rows) const;
  DevicePtr<std::byte> States() { return hidden_.data().As<std::byte>(); }

  const Model& model_;
  const std::shared_ptr<RunnerRanks> ranks_;
  const PassRank pass_rank_;
  Decoder decoder_;
  // Part of the workspace: [rows of the last step, hidden], or the tiles of a
  // prompt's states.
  DeviceArray<float> hidden_;
  WholeStates whole_;                   // the last step's, if not in tiles
  std::shared_ptr<TiledStates> tiles_;  // ... and if so
  Phase phase_ = Phase::kPrefill;       // the last step's
  LinkLedger streamed_use_ = {};
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_RUNNER_RANK_H_
