#ifndef TIERCEL_OFFLOAD_KV_KV_STORE_H_
#define TIERCEL_OFFLOAD_KV_KV_STORE_H_

#include <cstddef>
#include <cstdint>
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
// its bytes live. Absolute positions decide pages: page i holds positions from
// i * kPageTokens on, wherever the sequence begins.
//
//   BeginStep(rows, view)                room for positions [end, end + rows)
//   for every layer in order
//     BeginLayer -> KvPages, EndLayer    ops read the view and write the rows
//   Commit(rows kept)                    they exist; or Abandon: they never did
//
// What is not committed is nothing. What was written under a view that is not
// the target's is provisional: before the target goes on it must be truncated
// away, though it may be committed for the steps of a draft. A store is used
// from one thread, and so are the stores forked from it.
class KvStore : public LayeredKv {
 public:
  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  int64_t length() const { return end_ - begin_; }
  const KvLayout& layout() const { return layout_; }
  int layers() const { return layers_; }

  // `certain`: all rows will hold; otherwise Commit says how many.
  // Errors: invalid_view, out_of_memory, copy_failed, cancelled; nothing
  // changed.
  absl::Status BeginStep(int64_t rows, Station station, const View& view,
                         Cancelled cancelled, bool certain = true);
  // The first `rows` of the step exist from now on; rows <= those begun, and a
  // prompt's all. Errors: copy_failed, cancelled. After them, and after those
  // of BeginLayer, Abandon.
  absl::Status Commit(int64_t rows, Cancelled cancelled);
  void Abandon();

  // Leaves an uncommitted step as it is, in layer `layer` with `rows` rows of
  // it done, to go on at any later time through Resume and BeginLayer(layer).
  // `state`, device memory that the caller will need then, is kept with it and
  // put back by Resume; `bytes` may be 0. Any other call but Fork abandons it.
  // Errors: copy_failed, out_of_memory; Abandon then. Resume's cancelled: it
  // stays as it was left.
  absl::Status Suspend(int layer, int64_t rows, std::byte* state,
                       int64_t bytes);
  absl::Status Resume(std::byte* state, Cancelled cancelled);

  // Gives others to read what a prompt's step, in a sequence that begins at
  // position 0, has written of a layer, right after EndLayer of that or of a
  // later one; and `state`, `bytes` of device memory, or 0. The step goes on,
  // whatever comes of it.
  // Errors: copy_failed, out_of_memory, cancelled; invalid_argument, where
  // pages are on the device alone.
  virtual absl::StatusOr<std::unique_ptr<HeldLayer>> HoldLayer(
      int layer, std::byte* state, int64_t bytes, Cancelled cancelled) = 0;
  // Right after BeginStep such a step takes its first layers from somebody who
  // has computed them. `give` puts every page of these layers from the first
  // that the step writes on, in any order, pages counted from position 0, and
  // all of what is to be in `state`; it says how many layers they are, less
  // than all, and 0 that nothing comes of it. BeginLayer of the layer behind
  // them is next. Errors, after which the step goes on from layer 0: give's,
  // out_of_memory, invalid_argument; and copy_failed, cancelled: Abandon then.
  using PutPage = absl::FunctionRef<absl::Status(int layer, int64_t page,
                                                 const std::byte* bytes)>;
  using PutState = absl::FunctionRef<absl::Status(
      int64_t offset, const std::byte* from, size_t bytes)>;
  using GiveLayers =
      absl::FunctionRef<absl::StatusOr<int>(PutPage put, PutState put_state)>;
  absl::StatusOr<int> TakeLayers(GiveLayers give, std::byte* state,
                                 int64_t bytes, Cancelled cancelled);

  // Where a page may be written before it is put; null: nowhere, as Nowhere
  // says of all.
  using PlacePage = absl::FunctionRef<std::byte*(int layer, int64_t page)>;
  static std::byte* Nowhere(int /*layer*/, int64_t /*page*/) { return nullptr; }
  // Adds `rows` positions whose K and V somebody has, to a sequence that begins
  // at position 0 and ends with a page. `give` puts every page of every layer
  // from there on, in any order, pages counted from position 0; behind the last
  // position they may hold anything. A page may be written to its place, and be
  // put from there, which copies nothing. Nobody sees it. Errors, with nothing
  // changed: give's; out_of_memory, copy_failed, cancelled; invalid_argument,
  // where pages are on the device alone.
  // Pages that StaysOnDisk are `text`'s, if there is one, whose slots are pages
  // from position 0 on, and `give` leaves them out: steps read them there.
  using GivePages = absl::FunctionRef<absl::Status(PutPage put, PlacePage)>;
  absl::Status Load(int64_t rows, GivePages give, Cancelled cancelled,
                    const std::shared_ptr<PageFile>& text = nullptr);
  virtual bool StaysOnDisk(int64_t /*page*/) const { return false; }
  // How many of the positions can be read, as far as that is known: what is
  // behind them is to be truncated away.
  virtual int64_t IntactLength() const { return length(); }
  // What the first `positions` of such a sequence are now, for others to read;
  // where the open page is on the device, no more than whole pages. Errors:
  // copy_failed, cancelled; invalid_argument, as Load.
  virtual absl::StatusOr<std::unique_ptr<HeldPages>> Hold(
      int64_t positions, Cancelled cancelled) = 0;

  // Copies runs of what exists to device memory, from wherever they live, and
  // returns what AwaitCopies takes. Their places stay the caller's until then.
  virtual uint64_t CopyRuns(Stream& stream, Station station,
                            const std::vector<KvRun>& runs) = 0;
  // Errors: copy_failed, cancelled (the copies go on then).
  virtual absl::Status AwaitCopies(uint64_t copies, Cancelled cancelled) = 0;

  // Forgets all but the first `length` positions.
  void Truncate(int64_t length);
  // Copies the sequence; pages are shared until one of the two writes.
  // Errors: out_of_memory, copy_failed.
  virtual absl::StatusOr<std::unique_ptr<KvStore>> Fork() = 0;

  // From now on it sees the steps under the full view, and Truncate; null:
  // nobody does. It outlives the store or the next call of this. Forks have
  // none.
  void Observe(StepObserver* observer) { observer_ = observer; }
  // The rows that go through all layers, in order and counted from the step's
  // first; and after how many layers the others end.
  std::vector<PositionRange> StepDeepRows() const;
  int StepShallowLayers() const {
    return reads_.shallow() ? reads_.full_layers() : layers_;
  }
  // Who sees this step; null: nobody.
  StepObserver* StepSeenBy() const { return seen_by_; }

  virtual KvMoves moves() const { return {}; }
  // What the sequence holds of the host tier.
  virtual int64_t HostBytes() const = 0;

 protected:
  KvStore(const KvLayout& layout, int layers, int64_t begin)
      : layout_(layout), layers_(layers), begin_(begin), end_(begin) {}

  // A step begins. Errors: invalid_view; nothing changed.
  absl::Status BindView(const View& view) {
    ASSIGN_OR_RETURN(reads_,
                     BoundView::Bind(view, layers_, layout_.kv_heads, begin_));
    return absl::OkStatus();
  }
  int64_t FirstPage() const { return begin_ / kPageTokens; }
  // Pages of the sequence if it ended at `end`.
  int64_t PagesUpTo(int64_t end) const {
    return end == begin_ ? 0
                         : (end + kPageTokens - 1) / kPageTokens - FirstPage();
  }

  static absl::Status NotInHostMemory();
  // Where the sequence would end with all rows of the step.
  int64_t StepEnd() const { return end_ + step_rows_; }
  // The first so many layers in which `page` exists once the step's rows do.
  int LayersOf(int64_t page) const;

  const KvLayout layout_;
  const int layers_;
  const int64_t begin_;
  int64_t end_;
  BoundView reads_;  // of the last step

 private:
  // What the functions above do in the store itself.
  virtual absl::Status BeginOwnStep(int64_t rows, Station station,
                                    const View& view, Cancelled cancelled) = 0;
  virtual absl::Status CommitOwn(int64_t rows, Cancelled cancelled) = 0;
  virtual void AbandonOwn() = 0;
  virtual absl::Status SuspendOwn(int layer, int64_t rows, std::byte* state,
                                  int64_t bytes) = 0;
  virtual absl::Status ResumeOwn(std::byte* state, Cancelled cancelled) = 0;
  virtual absl::StatusOr<int> TakeOwnLayers(GiveLayers give, std::byte* state,
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
