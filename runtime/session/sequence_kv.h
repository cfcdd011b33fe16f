#ifndef TIERCEL_RUNTIME_SESSION_SEQUENCE_KV_H_
#define TIERCEL_RUNTIME_SESSION_SEQUENCE_KV_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kv/kv_layout.h"
#include "offload/disk/page_file.h"
#include "offload/kv/held_pages.h"
#include "offload/kv/kv_store.h"
#include "runtime/model/model.h"
#include "runtime/plan/session_plan.h"
#include "runtime/plan/tier_plan.h"
#include "runtime/session/interrupted_prefill.h"
#include "runtime/session/rank_kv.h"
#include "runtime/session/time_spent.h"

namespace tiercel {

// The KV of one sequence on all ranks, each of which has its heads; and what is
// kept of a prompt that was stopped. It knows no tokens, and computes nothing:
// a Runner passes rows that read and write it.
class SequenceKv {
 public:
  using Cancelled = KvStore::Cancelled;

  // `plans` are [rank]; the model and `gather` outlive it. Errors: those of
  // RankKv::Make.
  static absl::StatusOr<std::unique_ptr<SequenceKv>> Create(
      const Model& model,
      absl::Span<const std::shared_ptr<const RankPlan>> plans, Gather& gather,
      const PromptCacheFolder* texts);
  // Errors: those of RankKv::Fork.
  enum class Copies { kAll, kPages };  // pages alone: without views
  absl::StatusOr<std::unique_ptr<SequenceKv>> Fork(
      Copies copies = Copies::kAll) const;

  const std::vector<std::unique_ptr<RankKv>>& ranks() const { return ranks_; }
  // These are rank 0's; the context, and all else that is not per rank, holds
  // for all ranks.
  RankKv& first() const { return *ranks_.front(); }
  KvStore& store() const { return *first().store; }
  const SessionSite& site() const { return first().site; }
  const TierPlan& plan() const { return first().plan; }
  std::vector<SessionSite> sites() const;  // [rank]
  std::vector<TierPlan> plans() const;     // [rank]

  // Returns true if there is one rank, so that a step may stop half-way: with
  // several none may, since they would differ.
  bool IsAlone() const { return ranks_.size() == 1; }

  // ---- After a step ----

  // Adds the first `rows` rows of the step. Errors: copy_failed, cancelled.
  absl::Status Commit(int64_t rows, Cancelled cancelled);
  // Undoes the step; all ranks then hold `length` positions.
  void Abandon(int64_t length);
  // Keeps the first `length` positions, and drops an interrupted prefill.
  void Truncate(int64_t length);
  // Cuts all ranks to the positions that every rank holds, and returns their
  // number.
  int64_t Align();
  // The number of positions that all ranks can read.
  int64_t IntactLength() const;

  const InterruptedPrefill& interrupted() const { return interrupted_; }
  InterruptedPrefill& interrupted() { return interrupted_; }
  void DropInterrupted();
  // Makes the views of all ranks unusable, since one rank's may be: ranks must
  // choose the same positions, and draft equally far.
  void DropViews();

  // ---- Pages of all heads, as in files ----

  KvLayout WholeLayout() const;
  // KvStore::Load of pages that `give` puts once; each rank takes its heads.
  // All ranks have room for the pages before the first is put.
  absl::Status Load(int64_t rows, KvStore::GivePages give, Cancelled cancelled,
                    const std::shared_ptr<PageFile>& text);
  // KvStore::Hold.
  absl::StatusOr<std::unique_ptr<HeldPages>> Hold(int64_t length,
                                                  Cancelled cancelled);

  // ---- Its use of memory and links ----

  // Bytes that a position takes in a layer on all ranks: more than the model's
  // if several ranks keep the same KV head.
  int64_t RowBytes() const;
  // Memory in use now: the host's of this KV, the devices' with all else that
  // is in them.
  MemoryUse memory() const;
  // The time in which the busiest link copied.
  double LinkSeconds() const;

 private:
  explicit SequenceKv(const Model& model) : model_(model) {}

  absl::Status LoadFrom(size_t rank, int64_t rows, KvStore::GivePages give,
                        Cancelled cancelled,
                        const std::shared_ptr<PageFile>& text);

  const Model& model_;
  std::vector<std::unique_ptr<RankKv>> ranks_;
  InterruptedPrefill interrupted_;
};

// Drops an interrupted prefill, and gives back memory as RankKv::Trim.
void Trim(SequenceKv& kv);

}  // namespace tiercel

#endif  // TIERCEL_RUNTIME_SESSION_SEQUENCE_KV_H_
