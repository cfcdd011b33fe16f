#ifndef TIERCEL_RUNTIME_SEQUENCE_SESSION_RANK_H_
#define TIERCEL_RUNTIME_SEQUENCE_SESSION_RANK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "models/decoder/decoder.h"
#include "offload/kv/kv_store.h"
#include "offload/kv/kv_tier.h"
#include "offload/kv/tiled_states.h"
#include "offload/plan/tier_plan.h"
#include "offload/ranks/gather.h"
#include "offload/view/attention_shares.h"
#include "offload/view/retrieval.h"
#include "runtime/model/model.h"
#include "runtime/pass/pass.h"
#include "runtime/predict/session_plan.h"

namespace tiercel {

// The means by which the ranks of a session and its forks work together.
struct SessionRanks {
  // GPUs gather by NCCL; if it is not available they copy, with a warning.
  // `streams`: one of each rank's, used in this call alone. Errors: no_thread;
  // invalid_environment; device_lost; if TIERCEL_NCCL=1 asks for NCCL, its
  // errors.
  static absl::StatusOr<std::shared_ptr<SessionRanks>> Create(
      const Model& model, const std::vector<std::unique_ptr<Stream>>& streams);

  std::unique_ptr<RankGroup> group;
  std::unique_ptr<Gather> gather;
  std::string warning;  // empty: none
};

// A session's part on one rank: the KV of the rank's heads, and the means to do
// its part of a step. It knows no tokens: the session calls all of its ranks,
// each in its part of a RankGroup::Run.
class SessionRank {
 public:
  using Cancelled = KvStore::Cancelled;

  // `threads`: one rank's.
  SessionRank(const Model& model, const SessionSite& site, const TierPlan& plan,
              std::unique_ptr<Stream> stream,
              std::shared_ptr<SessionRanks> ranks, int threads);

  // Allocates the KV; a retrieval view, if the site has one; and, if memory is
  // planned, all else that the session will ever need and keeps. `texts`: the
  // folder for pages that the plan has on disk; may be null if there are none.
  // Errors: out_of_memory; those of Machine::NewLink and
  // KvFolder::OpenNameless.
  absl::Status MakeKv(const PromptCacheFolder* texts);
  // The size of the workspace that its calls need.
  WorkspaceSize Needs() const;
  // Makes a copy with the same sequence on the same rank. Errors: those of
  // KvStore::Fork and Retrieval::Fork.
  absl::StatusOr<std::unique_ptr<SessionRank>> Fork() const;

  // ---- Parts of a step, of `rows` rows under `view` ----

  // Begins a step: makes room, then calls `go_on`, which may load finished
  // layers (TakeLayers).
  absl::Status BeginForward(int64_t rows, Phase phase, const View& view,
                            bool certain, Cancelled cancelled,
                            absl::FunctionRef<absl::Status()> go_on);
  // Goes on with a step that was stopped, instead of beginning one.
  absl::Status Resume(int64_t rows, Cancelled cancelled);
  // Passes the rows, of tokens `ids`, through all layers, from `point` on;
  // `after` is called after each layer.
  absl::Status RunLayers(const int32_t* ids, int64_t rows,
                         PassProgress progress, Cancelled cancelled,
                         absl::FunctionRef<void(int)> after, PassPoint* point);
  // Parks the finished part of a step of `rows` rows outside the workspace.
  // `others`: other sessions may compute in the workspace meanwhile. Errors:
  // also out_of_memory.
  absl::Status Suspend(int64_t rows, const PassPoint& point, bool others);
  void DropParked();
  // KvStore::HoldLayer, with the hidden states of a step of `rows` rows.
  absl::StatusOr<std::unique_ptr<HeldLayer>> HoldLayer(int64_t rows, int layer,
                                                       Cancelled cancelled);
  // KvStore::HoldLayer, without hidden states.
  absl::StatusOr<std::unique_ptr<HeldLayer>> HoldPages(int layer,
                                                       Cancelled cancelled) {
    return kv->HoldLayer(layer, States(), /*bytes=*/0, cancelled);
  }
  absl::StatusOr<int> TakeLayers(int64_t rows, KvStore::GiveLayers give,
                                 Cancelled cancelled);

  // Writes the logits of `count` rows of the last step, from row `first` on,
  // into row `row` of `logits` and those after it. Errors: out_of_memory, and
  // those of the ops.
  absl::Status LogitsInto(int64_t first, int64_t count, size_t row);

  // Passes `ids` through the first `layers` layers over the retrieval view.
  absl::Status DraftForward(const int32_t* ids, int64_t rows, int layers,
                            Cancelled cancelled);
  // Passes the row of `id` over the view, and commits its K and V to the store.
  absl::Status ViewStep(int32_t id, Phase phase, Cancelled cancelled);

  // FillKv for the rank's heads.
  absl::Status Fill(int64_t rows, uint64_t seed, PassProgress progress,
                    Cancelled cancelled);

  // The bytes that moved since the session was made.
  KvMoves moves() const;
  RankTraffic traffic() const;

  // ---- Memory ----

  // Computes in `workspace` until Release, and allocates what it lacks there.
  void Use(Workspace::Rank workspace);
  Workspace::Rank Release();
  // Allocates all that a call needs, if memory is planned. Errors:
  // out_of_memory.
  absl::Status ReserveAll();
  // Makes room for a step of `rows` rows, whose hidden states are in tiles if
  // the plan does not have all of them on the device.
  absl::Status ReserveHidden(int64_t rows);
  absl::Status ReserveLogits();
  absl::Status ReserveShares();

  Machine& machine() const { return model_.machine_of(site.rank); }
  // Returns true if there is no other rank, so that a call may stop half-way.
  bool alone() const { return model_.ranks() == 1; }
  int first_head() const {
    return static_cast<int>(site.split->kv_heads(site.rank).begin);
  }

  const SessionSite site;
  const TierPlan plan;
  const std::unique_ptr<Stream> stream;
  std::unique_ptr<KvStore> kv;
  std::shared_ptr<Placement> placement;  // null: one memory
  std::shared_ptr<KvTier> tier;          // null: one memory
  std::unique_ptr<TiledStates> tiles;    // null: all are on the device
  std::unique_ptr<Retrieval> retrieval;  // null: none; ends before the above
  // Shared with its forks, which use it in turn; null: not needed yet.
  std::shared_ptr<AttentionShares> shares;

  // Part of the workspace: [rows of the last step, hidden], or the tiles of a
  // prompt's states.
  DeviceArray<float> hidden;
  // Part of the workspace: [1 + kMaxStepRows, vocab], the logits of the token
  // after the last, if known, then those of some rows. Empty: not needed yet.
  DeviceArray<float> logits;

 private:
  View Own(const View& view) const;
  const Weights& weights() const { return model_.weights_of(site.rank); }
  Pass PassOf(LayeredKv& layers_of, const int32_t* ids, int64_t rows,
              int64_t before);
  // Returns true if the last step's rows are in tiles.
  bool IsTiled() const { return tiles != nullptr && tiles->HasStep(); }
  bool GoesInTiles(int64_t rows) const {
    return tiles != nullptr && rows > plan.state_rows;
  }
  // Returns true if all memory is taken before it is needed.
  bool IsPlanned() const { return !plan.in_place || plan.on_device; }
  absl::Status FitHidden(int64_t rows);
  void NotePromise();
  int64_t StateBytes(int64_t rows) const;
  std::byte* States() { return reinterpret_cast<std::byte*>(hidden.data()); }
  void MakeTiles();

  const Model& model_;
  const std::shared_ptr<SessionRanks> ranks_;
  const PassRank pass_rank_;
  Decoder decoder_;
  WholeStates whole_;  // the last step's, if it is not in tiles
  // Hidden states of a step that was stopped: in place in their old memory; in
  // a copy, for a GPU that has all KV. Else the store parks them with pages.
  DeviceArray<float> parked_;
  HostRegion parked_copy_;
  MemoryPromise parked_promise_;
  // Host memory besides KV that it and its forks may take.
  std::shared_ptr<MemoryPromise> promise_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_SESSION_RANK_H_
