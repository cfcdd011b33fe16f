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

// How the ranks of a session and its forks work together.
struct SessionRanks {
  // GPUs gather by NCCL, unless it is not there: what says so is a warning.
  // `streams`: one of each rank's, for this call alone. Errors: no_thread;
  // invalid_environment; device_lost; where TIERCEL_NCCL=1 asks for it, those
  // of NCCL.
  static absl::StatusOr<std::shared_ptr<SessionRanks>> Create(
      const Model& model, const std::vector<std::unique_ptr<Stream>>& streams);

  std::unique_ptr<RankGroup> group;
  std::unique_ptr<Gather> gather;
  std::string warning;  // empty: none
};

// What a session has on one rank: the KV of the rank's heads, and the means to
// do its part of a step. It knows no tokens: what is done the session says, to
// all of its ranks, each of which does it in its part of a RankGroup::Run.
class SessionRank {
 public:
  using Cancelled = KvStore::Cancelled;

  // `threads`: a rank's.
  SessionRank(const Model& model, const SessionSite& site, const TierPlan& plan,
              std::unique_ptr<Stream> stream,
              std::shared_ptr<SessionRanks> ranks, int threads);

  // Takes the KV; a retrieval view, where the site has one; and where memory is
  // planned all else that a session will ever need and keeps. `texts`: where
  // pages go that the plan has on disk; null: it has none there. Errors:
  // out_of_memory; those of Machine::NewLink and KvFolder::OpenNameless.
  absl::Status MakeKv(const TextsFolder* texts);
  // What a call of it computes in.
  WorkspaceSize Needs() const;
  // It has the same sequence, on the same rank. Errors: those of KvStore::Fork
  // and Retrieval::Fork.
  absl::StatusOr<std::unique_ptr<SessionRank>> Fork() const;

  // ---- Parts of a step, of `rows` rows under `view` ----

  // Makes room; `go_on` may then have layers from somewhere (TakeLayers).
  absl::Status BeginForward(int64_t rows, Station station, const View& view,
                            bool certain, Cancelled cancelled,
                            absl::FunctionRef<absl::Status()> go_on);
  // Takes up the step that was stopped instead.
  absl::Status Resume(int64_t rows, Cancelled cancelled);
  // Passes the rows, of tokens `ids`, through all layers, from `point` on;
  // `after` is called behind each.
  absl::Status RunLayers(const int32_t* ids, int64_t rows,
                         PassProgress progress, Cancelled cancelled,
                         absl::FunctionRef<void(int)> after, PassPoint* point);
  // Parks what was done of a step of so many rows, apart from the workspace,
  // which `others` may compute in. Errors: also out_of_memory.
  absl::Status Suspend(int64_t rows, const PassPoint& point, bool others);
  void DropParked();
  // KvStore's, with the hidden states of a step of so many rows.
  absl::StatusOr<std::unique_ptr<HeldLayer>> HoldLayer(int64_t rows, int layer,
                                                       Cancelled cancelled);
  // Without them.
  absl::StatusOr<std::unique_ptr<HeldLayer>> HoldPages(int layer,
                                                       Cancelled cancelled) {
    return kv->HoldLayer(layer, States(), /*bytes=*/0, cancelled);
  }
  absl::StatusOr<int> TakeLayers(int64_t rows, KvStore::GiveLayers give,
                                 Cancelled cancelled);

  // Logits of `count` rows of the last step, from row `first` on, into row
  // `row` of logits. Errors: out_of_memory, and those of the ops.
  absl::Status LogitsInto(int64_t first, int64_t count, size_t row);

  // Passes `ids` through the first `layers` layers over the retrieval view.
  absl::Status DraftForward(const int32_t* ids, int64_t rows, int layers,
                            Cancelled cancelled);
  // Passes the row of `id` over the view, and commits its K and V to the store.
  absl::Status ViewStep(int32_t id, Station station, Cancelled cancelled);

  // FillKv of the rank's heads.
  absl::Status Fill(int64_t rows, uint64_t seed, PassProgress progress,
                    Cancelled cancelled);

  // What moved since the session was made.
  KvMoves moves() const;
  RankTraffic traffic() const;

  // ---- Memory ----

  // It computes in this until Release, and takes of the device's memory what it
  // lacks there.
  void Use(Workspace::Rank workspace);
  Workspace::Rank Release();
  // Takes all that a call needs, where memory is planned. Errors:
  // out_of_memory.
  absl::Status ReserveAll();
  // Makes room for a step of so many rows, whose hidden states are in tiles
  // where the plan has not all on the device.
  absl::Status ReserveHidden(int64_t rows);
  absl::Status ReserveLogits();
  absl::Status ReserveShares();

  Machine& machine() const { return model_.machine_of(site.rank); }
  // It is the only one: what is cancelled half-way is nobody else's.
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
  // Its forks have the same, by turns; null: nobody asked yet.
  std::shared_ptr<AttentionShares> shares;

  // Of the workspace.
  // [rows of the last step, hidden], or of a prompt whose states are in tiles
  // these.
  DeviceArray<float> hidden;
  // [1 + kMaxStepRows, vocab]: those of the token after the last, if they are
  // known, and of some rows. Empty: nobody asked for any.
  DeviceArray<float> logits;

 private:
  View Own(const View& view) const;
  const Weights& weights() const { return model_.weights_of(site.rank); }
  Pass PassOf(LayeredKv& layers_of, const int32_t* ids, int64_t rows,
              int64_t before);
  // The last step's rows are in tiles.
  bool IsTiled() const { return tiles != nullptr && tiles->HasStep(); }
  bool GoesInTiles(int64_t rows) const {
    return tiles != nullptr && rows > plan.state_rows;
  }
  // All that it will need is taken before it needs it.
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
  WholeStates whole_;  // of the last step, where it is not in tiles
  // Those of a step that was stopped, in place in the memory that they were in;
  // a copy, of a GPU that has all KV. Else the store parks them with pages.
  DeviceArray<float> parked_;
  HostRegion parked_copy_;
  MemoryPromise parked_promise_;
  // What it and its forks may take of the host's memory besides.
  std::shared_ptr<MemoryPromise> promise_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SEQUENCE_SESSION_RANK_H_
