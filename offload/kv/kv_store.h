#ifndef TIERCEL_OFFLOAD_KV_KV_STORE_H_
#define TIERCEL_OFFLOAD_KV_KV_STORE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "lib/status/status_macros.h"
#include "offload/kv/held_layer.h"
#include "offload/kv/held_pages.h"
#include "offload/kv/kv_run.h"
#include "offload/kv/layered_kv.h"
#include "offload/kv/view.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// The full, append-only KV of one sequence: positions [begin, end), wherever
// its bytes live. Pages follow from absolute positions: page i holds positions
// from i * kPageTokens on, wherever the sequence begins.
//
//   BeginStep(rows, view)                room for positions [end, end + rows)
//   for every layer in order
//     BeginLayer -> KvPages, EndLayer    ops read the view and write the rows
//   Commit(rows kept)                    these exist now; or Abandon: none does
//
// Rows that are not committed do not exist. Rows that were written under a view
// that is not the target's are provisional: they may be committed for the steps
// of a draft, but must be truncated away before the target goes on. A store and
// all stores forked from it are used from one thread.
class KvStore : public LayeredKv {
 public:
  static constexpr auto kAgreed = [](const absl::Status& room) { return room; };

  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  int64_t length() const { return end_ - begin_; }
  const KvLayout& layout() const { return layout_; }
  int layers() const { return layers_; }

  // Called once a step has room, or an error that says why it has none; the
  // answer decides whether it begins.
  using Agree = absl::FunctionRef<absl::Status(const absl::Status& room)>;
  // `certain`: all rows will be committed; otherwise Commit says how many.
  // Errors, with nothing changed: invalid_view, out_of_memory, copy_failed,
  // cancelled; those of `agree`.
  absl::Status BeginStep(int64_t rows, Phase phase, const View& view,
                         Cancelled cancelled, bool certain = true,
                         Agree agree = kAgreed);
  // Commits the first `rows` rows of the step, which exist from now on; those
  // of a prompt are all committed. Errors: copy_failed, cancelled. After these,
  // and after errors of BeginLayer, the caller calls Abandon.
  absl::Status Commit(int64_t rows, Cancelled cancelled);
  void Abandon();

  // Stops an uncommitted step in layer `layer`, with `rows` rows of that done;
  // Resume and BeginLayer(layer) go on with it at any later time. `bytes` (0 or
  // more) at `state` are saved with it, and Resume writes them
  // back. Any other call but Fork abandons the step. Errors: copy_failed,
  // out_of_memory, after which the caller calls Abandon. If Resume returns
  // cancelled, the step stays suspended.
  absl::Status Suspend(int layer, int64_t rows, DevicePtr<std::byte> state,
                       int64_t bytes);
  absl::Status Resume(DevicePtr<std::byte> state, Cancelled cancelled);

  // Returns, for other threads to read, the rows that a prompt's step has
  // written in `layer`, and a copy of `bytes` (0 or more) at `state`. Called
  // right after EndLayer of that layer or a later one, in a sequence that
  // begins at position 0. The step goes on, even after an error. Errors:
  // copy_failed, out_of_memory, cancelled; invalid_argument if pages are on the
  // device alone.
  virtual absl::StatusOr<std::unique_ptr<HeldLayer>> HoldLayer(
      int layer, DevicePtr<std::byte> state, int64_t bytes,
      Cancelled cancelled) = 0;
  // Called right after BeginStep of such a step, takes its first layers from
  // where they were computed before, and returns their number. `give` puts
  // every page of these layers from the first that the step writes, in any
  // order, with pages counted from position 0, and all bytes for `state`. It
  // returns the number of layers, less than all, or 0 if it has none to give.
  // BeginLayer of the first layer that was not taken is next. Errors after
  // which the step goes on from layer 0: give's, out_of_memory,
  // invalid_argument. Errors after which the caller calls Abandon: copy_failed,
  // cancelled.
  using PutPage = absl::FunctionRef<absl::Status(int layer, int64_t page,
                                                 const std::byte* bytes)>;
  using PutState = absl::FunctionRef<absl::Status(
      int64_t offset, const std::byte* from, size_t bytes)>;
  using GiveLayers =
      absl::FunctionRef<absl::StatusOr<int>(PutPage put, PutState put_state)>;
  absl::StatusOr<int> TakeLayers(GiveLayers give, DevicePtr<std::byte> state,
                                 int64_t bytes, Cancelled cancelled);

  // Returns the address at which a page may be written before it is put, or
  // null if there is none. Nowhere returns null for every page.
  using PlacePage = absl::FunctionRef<std::byte*(int layer, int64_t page)>;
  static std::byte* Nowhere(int /*layer*/, int64_t /*page*/) { return nullptr; }
  // Adds `rows` positions whose K and V were computed before to a sequence that
  // begins at position 0 and ends at a page boundary. `give` puts every page of
  // every layer from there on, in any order, with pages counted from position
  // 0; cells after the last position may hold anything. A page may be written
  // to its place and be put from there, which copies nothing. No observer sees
  // the load. Errors, with nothing changed: give's; out_of_memory, copy_failed,
  // cancelled; invalid_argument if pages are on the device alone. `text`, if
  // not null, is a file whose slots are the pages from position 0 on. `give`
  // leaves out the pages that StaysOnDisk: steps read them there.
  using GivePages = absl::FunctionRef<absl::Status(PutPage put, PlacePage)>;
  absl::Status Load(int64_t rows, GivePages give, Cancelled cancelled,
                    const std::shared_ptr<PageFile>& text = nullptr);
  virtual bool StaysOnDisk(int64_t /*page*/) const { return false; }
  // The number of positions that can be read, as far as is known: the caller
  // truncates the rest away.
  virtual int64_t IntactLength() const { return length(); }
  // Returns the first `positions` of such a sequence as they are now, for other
  // threads to read; if the open page is on the device, only the whole pages.
  // Errors: copy_failed, cancelled; invalid_argument, as Load.
  virtual absl::StatusOr<std::unique_ptr<HeldPages>> Hold(
      int64_t positions, Cancelled cancelled) = 0;

  // Copies runs of existing rows, from wherever they live, and returns the
  // number that AwaitCopies takes. The caller keeps the runs' places until that
  // has returned.
  virtual uint64_t CopyRuns(Stream& stream, Phase phase,
                            const std::vector<KvRun>& runs) = 0;
  // Waits for the copies of a CopyRuns. Errors: copy_failed; cancelled, while
  // the copies go on.
  virtual absl::Status AwaitCopies(uint64_t copies, Cancelled cancelled) = 0;

  // Forgets all but the first `length` positions.
  void Truncate(int64_t length);
  // Copies the sequence; pages are shared until one of the two writes.
  // Errors: out_of_memory, copy_failed.
  virtual absl::StatusOr<std::unique_ptr<KvStore>> Fork() = 0;

  // Shows `observer` the steps under the full view, and Truncate, from now on;
  // null ends that. The observer outlives the store or the next call of this.
  // Forks have none.
  void Observe(StepObserver* observer) { observer_ = observer; }
  // A step as a pass takes it through the layers.
  struct StepRows {
    // The rows that go through all layers, in order and counted from the step's
    // first row.
    std::vector<PositionRange> deep;
    int shallow_layers;     // the layers after which the other rows end
    StepObserver* seen_by;  // null: none
  };
  StepRows Step() const;

  virtual KvMoves moves() const { return {}; }
  // The bytes that the sequence holds in the host tier.
  virtual int64_t HostBytes() const = 0;

 protected:
  KvStore(const KvLayout& layout, int layers, int64_t begin)
      : layout_(layout), layers_(layers), begin_(begin), end_(begin) {}

  // Sets reads_ for a step that begins. Errors, with nothing changed:
  // invalid_view.
  absl::Status BindView(const View& view) {
    ASSIGN_OR_RETURN(reads_,
                     BoundView::Bind(view, layers_, layout_.kv_heads, begin_));
    return absl::OkStatus();
  }
  int64_t FirstPage() const { return begin_ / kPageTokens; }
  // The number of pages of the sequence if it ended at `end`.
  int64_t PagesUpTo(int64_t end) const {
    return end == begin_ ? 0
                         : (end + kPageTokens - 1) / kPageTokens - FirstPage();
  }

  static absl::Status NotInHostMemory();
  // The end of the sequence if all rows of the step were committed.
  int64_t StepEnd() const { return end_ + step_rows_; }
  // The step's observer reads no K and V before this position.
  int64_t ObserverReadsFrom() const {
    return seen_by_ == nullptr ? std::numeric_limits<int64_t>::max()
                               : seen_by_->ReadsFrom();
  }
  // The number of layers, from the first, in which `page` exists once the
  // step's rows do.
  int LayersOf(int64_t page) const;

  const KvLayout layout_;
  const int layers_;
  const int64_t begin_;
  int64_t end_;
  BoundView reads_;  // the view of the last step

 private:
  // The stores' own parts of the functions above.
  virtual absl::Status BeginOwnStep(int64_t rows, Phase phase, const View& view,
                                    Cancelled cancelled) = 0;
  virtual absl::Status CommitOwn(int64_t rows, Cancelled cancelled) = 0;
  virtual void AbandonOwn() = 0;
  virtual absl::Status SuspendOwn(int layer, int64_t rows,
                                  DevicePtr<std::byte> state,
                                  int64_t bytes) = 0;
  virtual absl::Status ResumeOwn(DevicePtr<std::byte> state,
                                 Cancelled cancelled) = 0;
  virtual absl::StatusOr<int> TakeOwnLayers(GiveLayers give,
                                            DevicePtr<std::byte> state,
                                            int64_t bytes,
                                            Cancelled cancelled) = 0;
  virtual void TruncateOwn(int64_t length) = 0;
  virtual absl::Status LoadOwn(int64_t rows, GivePages give,
                               const std::shared_ptr<PageFile>& text,
                               Cancelled cancelled) = 0;

  absl::Status ShowStep(int64_t rows, bool certain, Cancelled cancelled);
  void HideStep();

  StepObserver* observer_ = nullptr;
  StepObserver* seen_by_ = nullptr;
  int64_t step_rows_ = 0;
  bool suspended_was_seen_ = false;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_KV_STORE_H_
