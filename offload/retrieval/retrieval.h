#ifndef TIERCEL_OFFLOAD_RETRIEVAL_RETRIEVAL_H_
#define TIERCEL_OFFLOAD_RETRIEVAL_RETRIEVAL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/stream.h"
#include "offload/kv/kv_store.h"
#include "offload/retrieval/branch_kv.h"
#include "offload/retrieval/compact_kv.h"
#include "offload/retrieval/importance_selector.h"
#include "offload/retrieval/selector.h"
#include "offload/retrieval/view_staging.h"

namespace tiercel {

// The size of a sequence's retrieval view, and the way it is chosen.
struct RetrievalSize {
  int chunk = 32;         // positions: 8, 16, 32, 64 or 128
  int64_t budget = 1024;  // positions of chosen chunks, per layer and KV head
  int64_t sink = 32;      // the first of these, which are always chosen
  int64_t window = 64;    // the newest positions besides, at least
  // The parameters of SFI's Selector. It may have chunks of 1, 2 or 4 positions
  // too; chunks of one are chosen by exact scores of keys, others by digests.
  // If absent, the view is chosen as by TriForce: by digests and the last row.
  std::optional<Selection> selection = {};
  // The view has the store's types, as its contents may be kept.
  bool keeps_types = false;
  // A context that the view could hold whole is refused.
  bool must_choose = false;
  bool measures = false;  // the view measures coverage
  // Rows that may come before the newest are cut to the window again.
  int64_t growth = kMaxStepRows;
  // Rows of a draft's branches, behind those of the draft.
  int64_t branch_rows = 0;
};
// Errors: invalid_argument, naming the field as tiercel.h does.
absl::Status CheckRetrievalSize(const RetrievalSize& size);

// The retrieval view of a sequence (TriForce, arXiv 2404.11912, sections 4.1
// and 4.2): it sees the steps of the store, is chosen by the target's own
// queries, and is read by drafts.
//
//   a certain step   (whose rows all stay, as a prompt's) chooses anew by its
//                    last row, layer by layer, while the layer's pages are on
//                    the device: no copy comes from the host
//   a sweep          (whose rows may be rejected) keeps its rows' queries, K
//                    and V; then its last accepted row may choose again
//                    (Refresh): only the missing chunks are copied
//
// With a selection, which may need keys that are on the device only during a
// step, the view is chosen in every step: in a prompt by its last rows, in a
// sweep by its first row, which always stays, and by the drafted rows after it
// if the selection says so; Refresh has nothing left to do. A sweep, and a step
// after KeepPlaces, leave the chunks that stay chosen where they are.
//
// Between choices all the newest positions are in view. Drafts read the same
// bits after the same certain step and the same steps after it, whatever came
// before.
//
// The view may hold its rows in other types than the store. Rows that are
// copied from the store then arrive in a staging buffer, and are converted into
// their places by Await.
class Retrieval final : public StepObserver {
 public:
  struct Shape {
    KvLayout layout = {};       // the store's
    KvLayout view_layout = {};  // the same but for the types
    int layers = 0;
    int heads = 0;        // query heads
    int64_t begin = 0;    // the sequence's first position
    int64_t context = 0;  // positions
    RetrievalSize size = {};
    HeadsOfRanks of_ranks = {};
    // The staging buffer where types differ; it has room for one chunk at
    // least.
    int64_t view_staging_bytes = int64_t{1} << 20;
  };

  // Creates a view of the sequence in `store`, which must outlive the view and
  // calls it as the observer of its steps. Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<Retrieval>> Create(DeviceMemory& memory,
                                                           const Shape& shape,
                                                           KvStore& store);
  // Device memory that Create takes.
  static int64_t Bytes(const Shape& shape);
  // Waits for copies that are under way, then frees the memory.
  ~Retrieval() override;

  // Returns the view of a fork, which has the digests and has chosen nothing.
  absl::StatusOr<std::unique_ptr<Retrieval>> Fork(KvStore& store) const;

  // StepObserver
  absl::Status BeginStep(int64_t end, int64_t rows, bool certain,
                         Cancelled cancelled) override;
  absl::Status KeepQueries(Stream& stream, int layer, int64_t first_row,
                           int64_t rows, DevicePtr<const float> q) override;
  int64_t ReadsFrom() const override {
    return certain_ || InSteps() ? 0 : selector_->UpdatesFrom();
  }
  absl::Status AfterLayer(Stream& stream, int layer,
                          const KvPages& kv) override;
  void Commit(int64_t end) override;
  void Abandon() override;
  void Truncate(int64_t end) override;

  const RetrievalSize& size() const { return shape_.size; }

  // Makes the view unusable until the next certain step, because another rank
  // has none.
  void Drop() { ready_ = false; }

  // Returns true if a draft may go on from the end of the sequence with `rows`
  // rows.
  bool HasRoom(int64_t rows) const {
    return ready_ &&
           compact_.RecentRoom() >= Recent() + rows + shape_.size.branch_rows;
  }
  // Returns true if no row was added since a certain step that had all the rows
  // that are to choose.
  bool fresh() const { return fresh_; }
  // The number of a prompt's rows that choose.
  int64_t evidence_rows() const {
    return InSteps() ? shape_.size.selection->evidence_rows : 1;
  }
  // The next certain step goes on with the view instead of starting anew.
  void KeepPlaces() { keep_places_ = true; }
  // From the next certain step on, above some layers drafts see the sinks and
  // the answer alone: there the newest chunks of the answer take the place of
  // chosen chunks.
  void ShowAbove(const CompactKv::Above& above) { compact_.ShowAbove(above); }
  // Begins a step over the view at `end`, which is the view's own. The step
  // calls KeepQueries, and AfterLayer to no effect.
  void BeginViewStep(int64_t end);

  // Chooses by the last accepted row of the last sweep, if that is known, and
  // begins to copy the missing chunks. Errors: those of ChunkScores;
  // copy_failed, cancelled.
  absl::Status Refresh(Stream& stream, Cancelled cancelled);
  // Called before a draft reads `layer`. Errors: copy_failed, cancelled.
  absl::Status Await(Stream& stream, int layer, Cancelled cancelled);

  // The KV that drafts read; they truncate it to its old end when they finish.
  CompactKv& kv() { return compact_; }
  // The KV of a draft's branch, whose next rows are at `place`; valid until the
  // next call for that branch.
  LayeredKv& Branch(const BranchPlace& place);
  int64_t refreshes() const { return refreshes_; }
  // The share of the last choosing row's attention that fell on positions that
  // were in view before: the mean of layers and query heads. Absent where the
  // view started anew, or chunks are not single positions.
  std::optional<double> coverage() const {
    if (coverage_.layers == 0) return std::nullopt;
    return coverage_.sum / coverage_.layers;
  }

 private:
  Retrieval(const Shape& shape, DeviceMemory& memory, KvStore& store,
            CompactKv compact, ViewStaging staging,
            std::unique_ptr<Selector> selector, DeviceArray<uint16_t> queries,
            DeviceArray<float> query_rows);

  int64_t Recent() const { return compact_.end() - compact_.recent_begin(); }
  // The first of the newest positions if the sequence ends at `end`.
  int64_t RecentBegin(int64_t end) const;
  // Returns true if the view is chosen in every step.
  bool InSteps() const { return shape_.size.selection.has_value(); }
  // Sets chosen_ to the sinks and the newest chunks of the answer, of those
  // before `chunks`.
  void ChooseAnswer(int64_t chunks);
  // The rows that choose, whose queries are kept.
  struct QueryRows {
    int64_t rows;
    int64_t drafted;  // the last rows, which may be rejected
    int64_t last;     // the position of the last row
  };
  // Chooses the chunks of `layer` by these rows, and appends those that the
  // view lacks to `missing`. `kv` is passed to the selector.
  absl::Status Choose(Stream& stream, int layer, const QueryRows& by,
                      const KvPages* kv, std::vector<KvRun>* missing);
  // Has the selector set chosen_ for `layer`.
  absl::Status ChooseByScores(Stream& stream, int layer, const QueryRows& by,
                              const KvPages* kv, int64_t chunks);
  // The rows that choose in the step that has begun.
  QueryRows QueryRowsInStep() const;
  DevicePtr<uint16_t> Query(int layer, int64_t position);
  // Begins to copy the `missing` runs of the layer; Await waits for them.
  absl::Status Fetch(Stream& stream, int layer,
                     const std::vector<KvRun>& missing, Cancelled cancelled);
  // Waits for the copies of `layer`.
  absl::Status Arrive(int layer, Cancelled cancelled);

  const Shape shape_;
  DeviceMemory& memory_;
  KvStore& store_;
  CompactKv compact_;
  ViewStaging staging_;
  std::unique_ptr<Selector> selector_;
  // The queries of the newest positions: f16 [layer][position % rows that are
  // kept][heads * head_dim]
  DeviceArray<uint16_t> queries_;
  int64_t queries_begin_ = 0;      // the first position whose queries are kept
  DeviceArray<float> query_rows_;  // the queries of the rows that choose
  std::vector<std::unique_ptr<BranchKv>> branches_;
  std::vector<std::vector<int32_t>> chosen_;  // [kv_head]
  std::vector<KvRun> runs_;
  std::vector<uint64_t> copies_;  // [layer]: copies under way
  bool ready_ = false;
  bool fresh_ = false;
  bool keep_places_ = false;
  int64_t refreshes_ = 0;

  // The last step
  int64_t step_end_ = 0;
  int64_t step_rows_ = 0;
  bool certain_ = false;
  bool kept_ = false;      // the view went on instead of starting anew
  int64_t seen_from_ = 0;  // recent_begin before the step
  struct {
    double sum = 0;
    int layers = 0;
  } coverage_;
  bool over_view_ = false;      // it reads the view
  int64_t last_position_ = -1;  // the last accepted row's; -1: not known
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_RETRIEVAL_RETRIEVAL_H_
