#ifndef TIERCEL_OFFLOAD_VIEW_RETRIEVAL_H_
#define TIERCEL_OFFLOAD_VIEW_RETRIEVAL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "kernels/machine/stream.h"
#include "offload/kv/kv_store.h"
#include "offload/view/chooser.h"
#include "offload/view/compact_kv.h"
#include "offload/view/landing.h"
#include "offload/view/selector_chooser.h"

namespace tiercel {

// How large the retrieval view of a sequence is.
struct RetrievalSize {
  int chunk = 32;         // positions: 8, 16, 32, 64 or 128
  int64_t budget = 1024;  // positions of chosen chunks, per layer and KV head
  int64_t sink = 32;      // of those, the first of the sequence
  int64_t window = 64;    // and at least so many of its newest, besides
  // How SFI's Selector chooses, in chunks of 1, 2, 4 positions too: of one by
  // exact scores of keys, of more by digests. Absent: TriForce's way, by
  // digests and the last row.
  std::optional<Selection> selection = {};
  bool keeps_types = false;  // those of the store: what it holds may be kept
  // A context that it could hold whole is refused.
  bool must_choose = false;
  bool measures = false;  // coverage
  // Rows that may come until the newest are cut to the window again.
  int64_t growth = kMaxStepRows;
};
// Errors: invalid_argument, naming the field as tiercel.h does.
absl::Status CheckRetrievalSize(const RetrievalSize& size);

// The retrieval view of a sequence (TriForce, arXiv 2404.11912, sections 4.1
// and 4.2): it sees the steps of the store, is chosen by the target's own
// queries, and is read by drafts.
//
//   a certain step   (all of its rows hold, a prompt's say) chooses anew by its
//                    last row, layer by layer, while the layer's pages are on
//                    the device: nothing moves
//   a sweep          whose verdict is open keeps its rows' queries, K and V;
//                    then the last row that holds may choose again (Refresh):
//                    chunks that are missing are copied, no others
//
// By a selection, which may ask keys that are at hand in a step alone, the view
// is chosen in every step: in a prompt by its last rows, in a sweep by its
// first row, which always holds, and by what was drafted after it if the
// selection says so; Refresh has nothing left to do. A step that KeepPlaces
// goes before, and a sweep, leave what stays chosen where it lies.
//
// Between choices all the newest positions are in view. What drafts read is bit
// for bit the same after the same certain step and what followed it, whatever
// came before.
//
// The view may hold its rows in other types than the store. What is copied from
// below then lands beside it, and is in its place once it is awaited.
class Retrieval final : public StepObserver {
 public:
  struct Shape {
    KvLayout layout = {};       // of the store
    KvLayout view_layout = {};  // the same but for the types
    int layers = 0;
    int heads = 0;        // query heads
    int64_t begin = 0;    // of the sequence
    int64_t context = 0;  // positions
    RetrievalSize size = {};
    HeadsOfRanks of_ranks = {};
    // Room for what is on its way, where types differ; at least one chunk's.
    int64_t landing_bytes = int64_t{1} << 20;
  };

  // A view of the sequence in `store`, which must outlive it and shows it its
  // steps. Errors: out_of_memory.
  static absl::StatusOr<std::unique_ptr<Retrieval>> Create(DeviceMemory& memory,
                                                           const Shape& shape,
                                                           KvStore& store);
  // Device memory that Create takes.
  static int64_t Bytes(const Shape& shape);
  // What has been asked for arrives before its place is given back.
  ~Retrieval() override;

  // The view of a fork: it knows the digests and has chosen nothing.
  absl::StatusOr<std::unique_ptr<Retrieval>> Fork(KvStore& store) const;

  // StepObserver
  absl::Status BeginStep(int64_t end, int64_t rows, bool certain,
                         Cancelled cancelled) override;
  absl::Status KeepQueries(Stream& stream, int layer, int64_t first_row,
                           int64_t rows, const float* q) override;
  absl::Status AfterLayer(Stream& stream, int layer,
                          const KvPages& kv) override;
  void Commit(int64_t end) override;
  void Abandon() override;
  void Truncate(int64_t end) override;

  const RetrievalSize& size() const { return shape_.size; }

  // Until the next certain step there is no view: another rank has none.
  void Drop() { ready_ = false; }

  // A draft may go on from the end of the sequence with `rows` rows.
  bool HasRoom(int64_t rows) const {
    return ready_ && compact_.RecentRoom() >= Recent() + rows;
  }
  // Nothing has been added since a certain step of all the rows that are to
  // choose.
  bool fresh() const { return fresh_; }
  // The rows of a prompt that choose.
  int64_t evidence() const {
    return InSteps() ? shape_.size.selection->evidence : 1;
  }
  // The certain step that comes next goes on with the view.
  void KeepPlaces() { keep_places_ = true; }
  // Above some layers drafts see the anchor and the answer alone, from the next
  // certain step on (SPEED, arXiv 2605.06105): of what the view chooses there,
  // the newest of the answer take the place. For chunks.
  void ShowAbove(const CompactKv::Above& above) { compact_.ShowAbove(above); }
  // A step over the view begins at `end`, which is that of the view; it calls
  // KeepQueries, and AfterLayer to no effect.
  void BeginViewStep(int64_t end);

  // Chooses by the last row of the last sweep, if it is known, and has what is
  // missing copied. Errors: those of ChunkScores; copy_failed, cancelled.
  absl::Status Refresh(Stream& stream, Cancelled cancelled);
  // Called before a draft reads `layer`. Errors: copy_failed, cancelled.
  absl::Status Await(Stream& stream, int layer, Cancelled cancelled);

  // What drafts read; they leave it as long as they found it.
  CompactKv& kv() { return compact_; }
  int64_t refreshes() const { return refreshes_; }
  // The share of the attention of the row that chose last which fell on what
  // was in view before, the mean of layers and query heads. Absent where the
  // view did not go on, or chunks are not single positions.
  std::optional<double> coverage() const {
    if (coverage_.layers == 0) return std::nullopt;
    return coverage_.sum / coverage_.layers;
  }

 private:
  Retrieval(const Shape& shape, DeviceMemory& memory, KvStore& store,
            CompactKv compact, Landing landing,
            std::unique_ptr<Chooser> chooser, DeviceArray<uint16_t> queries,
            DeviceArray<float> asking);

  int64_t Recent() const { return compact_.end() - compact_.recent_begin(); }
  // Where the newest positions begin if the sequence ends at `end`.
  int64_t RecentBegin(int64_t end) const;
  // The view is chosen in every step.
  bool InSteps() const { return shape_.size.selection.has_value(); }
  // The newest chunks of the answer, of those before `chunks`.
  void ChooseAnswer(int64_t chunks);
  // Rows that choose, whose queries are kept.
  struct Asking {
    int64_t rows;
    int64_t drafted;  // the last so many rows, whose verdict is open
    int64_t last;     // the position of the last row
  };
  // The chunks of `layer` for these rows: those that are not there. `kv` as the
  // chooser takes it.
  absl::Status Choose(Stream& stream, int layer, const Asking& by,
                      const KvPages* kv, std::vector<KvRun>* missing);
  // Has the chooser find the chunks of `layer`.
  absl::Status ChooseByScores(Stream& stream, int layer, const Asking& by,
                              const KvPages* kv, int64_t chunks);
  // The rows that choose in the step that has begun.
  Asking AskingInStep() const;
  uint16_t* Query(int layer, int64_t position);
  // Has `missing` of the layer copied; the view gets them when it is awaited.
  absl::Status Fetch(Stream& stream, int layer,
                     const std::vector<KvRun>& missing, Cancelled cancelled);
  // Waits for the copies of `layer`.
  absl::Status Arrive(int layer, Cancelled cancelled);

  const Shape shape_;
  DeviceMemory& memory_;
  KvStore& store_;
  CompactKv compact_;
  Landing landing_;
  std::unique_ptr<Chooser> chooser_;
  // The queries of the newest positions: f16 [layer][position % rows that are
  // kept][heads * head_dim]
  DeviceArray<uint16_t> queries_;
  int64_t queries_begin_ = 0;  // the first position whose queries are kept
  DeviceArray<float> asking_;  // of the rows that choose, as floats
  std::vector<std::vector<int32_t>> chosen_;  // [kv_head]
  std::vector<KvRun> runs_;
  std::vector<uint64_t> copies_;  // [layer]: on their way
  bool ready_ = false;
  bool fresh_ = false;
  bool keep_places_ = false;
  int64_t refreshes_ = 0;

  // The last step
  int64_t step_end_ = 0;
  int64_t step_rows_ = 0;
  bool certain_ = false;
  bool kept_ = false;      // the view goes on
  int64_t seen_from_ = 0;  // where its newest positions began before
  struct {
    double sum = 0;
    int layers = 0;
  } coverage_;
  bool over_view_ = false;      // it reads the view
  int64_t last_position_ = -1;  // that holds; -1: not known
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_VIEW_RETRIEVAL_H_
