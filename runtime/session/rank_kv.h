#ifndef TIERCEL_RUNTIME_SESSION_RANK_KV_H_
#define TIERCEL_RUNTIME_SESSION_RANK_KV_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "offload/kv/kv_store.h"
#include "offload/kv/kv_tier.h"
#include "offload/kv/tiled_states.h"
#include "offload/ranks/gather.h"
#include "offload/retrieval/attention_shares.h"
#include "offload/retrieval/retrieval.h"
#include "runtime/model/model.h"
#include "runtime/plan/session_plan.h"
#include "runtime/plan/tier_plan.h"

namespace tiercel {

// All that one sequence keeps on one rank: the KV of the rank's heads, the view
// that drafts read, and the hidden states of a prompt that was stopped or does
// not fit the device.
class RankKv {
 public:
  // The model outlives it.
  RankKv(const Model& model, std::shared_ptr<const RankPlan> planned);

  // Allocates the KV; a retrieval view, if the site has one; and, if memory is
  // planned, what else the sequence will ever keep. `texts`: the folder for
  // pages that the plan has on disk; may be null if there are none. Errors:
  // out_of_memory; those of Machine::NewLink and KvFolder::OpenNameless.
  absl::Status Make(Gather& gather, const PromptCacheFolder* texts);
  // Copies the sequence. Errors: those of KvStore::Fork and Retrieval::Fork.
  absl::StatusOr<std::unique_ptr<RankKv>> Fork() const;
  // A copy without a view.
  absl::StatusOr<std::unique_ptr<RankKv>> ForkPages() const;

  // Makes the shares, if there are none. Errors: out_of_memory.
  absl::Status ReserveShares();
  void DropParked() { parked = {}; }
  // Gives the system back the memory of pages that neither it nor a fork holds,
  // if the device computes where they lie.
  void Trim() {
    if (in_place != nullptr) in_place->Trim();
  }
  // Drops the hidden states of the last step, too, since a new one begins.
  void DropStates() {
    if (tiles != nullptr) tiles->EndStep();
    DropParked();
  }

  // The pages in memory that it shares with its forks, and how many of those
  // that were planned, on disk too, are free.
  const PagePool& pages() const {
    return tier != nullptr ? tier->pool : *in_place;
  }
  int64_t PlannedPages() const;
  int64_t RopeLength() const {
    return model_.config.RopeLength(site.first_position + plan.context);
  }
  // The bytes that moved since it was made.
  KvMoves moves() const;
  Machine& machine() const { return model_.machine_of(site.rank); }
  int first_head() const {
    return static_cast<int>(site.split->kv_heads(site.rank).begin);
  }
  // Returns true if other ranks before this one lack its first KV head, so that
  // of the ranks that keep the same heads this is the first.
  bool IsFirstOfHeads() const {
    return model_.split->IsFirstOfHeads(site.rank);
  }

  const std::shared_ptr<const RankPlan> planned;
  const SessionSite& site;  // these are its parts
  const TierPlan& plan;
  std::unique_ptr<KvStore> store;
  std::shared_ptr<Placement> placement;  // null: one memory
  std::shared_ptr<KvTier> tier;          // null: one memory
  std::shared_ptr<PagePool> in_place;    // null: several
  std::shared_ptr<TiledStates> tiles;    // null: all states are on the device
  std::unique_ptr<Retrieval> retrieval;  // null: none; ends before the above
  // Shared with its forks, which use it in turn; null: not needed yet.
  std::shared_ptr<AttentionShares> shares;

  // Hidden states of a prompt that was stopped: in place in their old memory;
  // in a copy, for a GPU that has all KV. Else the store parks them with pages.
  struct Parked {
    DeviceArray<float> states;
    HostRegion copy;
    MemoryPromise promise;
  };
  Parked parked;

 private:
  void MakeTiles();
  absl::Status TakeShare();
  void NotePromise();

  const Model& model_;
  // Host memory besides KV that it and its forks may take.
  std::shared_ptr<MemoryPromise> promise_;
};

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_RANK_KV_H_
