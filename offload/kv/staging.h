#ifndef TIERCEL_OFFLOAD_KV_STAGING_H_
#define TIERCEL_OFFLOAD_KV_STAGING_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "offload/kv/kv_tier.h"
#include "offload/kv/page_table.h"
#include "offload/kv/residency.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// The pages that a step's view reads in each layer.
class PagesRead {
 public:
  PagesRead() = default;  // all pages
  // [layer, or one if all are alike][page]: 1 or 0.
  explicit PagesRead(std::vector<std::vector<uint8_t>> layers)
      : layers_(std::move(layers)) {}

  bool In(int layer, int64_t page) const;
  bool InAny(int64_t page) const;

 private:
  std::vector<std::vector<uint8_t>> layers_;  // empty: everything
};

// The two layer buffers, as the steps of one sequence use them: while a layer
// computes over one, the next one's pages arrive in the other. After the last
// two layers of a step those of the first two are asked for, for a next step
// with the same view.
//
// A page has the same place in both buffers. The buffers are shared with forks,
// which take turns.
class Staging {
 public:
  using PageList = std::vector<int64_t>;
  using Ticket = CopyEngine::Ticket;
  using Cancelled = CopyEngine::Cancelled;

  // Copies are counted in `moves`. All arguments outlive this.
  Staging(KvTier& tier, PageTable& pages, Residency& residency, KvMoves& moves)
      : tier_(tier), pages_(pages), residency_(residency), moves_(moves) {}

  // Takes the buffers for this sequence, before a step lays out its pages.
  // Errors: cancelled.
  absl::Status Claim(Cancelled cancelled);
  // Returns true if layers have been fetched ahead for the next step, and the
  // pages of these.
  bool HasAhead() const { return Ahead() > 0; }
  const PageList& ahead_pages() const { return next_; }

  // Gives every page without a device slot a place in the buffers, whether the
  // view reads it or not: first the existing pages, in order, then those that a
  // prompt fills, from `first_written` on. The sequence ends at `end` before
  // the step. Of the pages that only exist below the host may attend to those
  // before `host_end`. Errors: out_of_memory.
  absl::Status LayOut(PagesRead reads, int64_t end, int64_t first_written,
                      Phase phase, int64_t host_end);
  // The pages that the host attends to in this step: consecutive ones, which
  // have places but are not fetched.
  std::span<const int64_t> host_pages() const {
    return std::span(step_.away).first(static_cast<size_t>(step_.host));
  }

  // Waits until the pages that `layer` reads have arrived and those that it
  // writes over have left. The layer after it has been asked for. Errors:
  // copy_failed, cancelled.
  absl::Status Bring(int layer, Cancelled cancelled);
  // The address of `page` of `layer`; null if the view reads none of it.
  DevicePtr<std::byte> PageOf(int layer, int64_t page) const;
  // Returns true if the page was given a place: the others were on the device.
  bool HasPlace(int64_t page) const {
    return step_.place[static_cast<size_t>(page)] >= 0;
  }
  // Sends pages of `layer` down, from where they are.
  Ticket SendDown(const PageList& pages, int layer);
  // `layer` has computed; `sent` is the copy of its pages down, or 0. Asks for
  // the layer that its buffer holds next; after a step's last two layers that
  // is one of the next step's, if `ahead`.
  void Done(int layer, Ticket sent, bool ahead);

  // The step has been committed; or it is abandoned, and its fetches are
  // dropped.
  void Commit();
  void Abandon();
  // The sequence ends at `end` now: pages fetched ahead may be stale.
  void Truncate(int64_t end);

  // A step stops in `layer`, in which it has written the pages `parked`: these
  // go down.
  Ticket Suspend(int layer, PageList parked);
  // Skips the layers before `layer`, which is next. Errors: cancelled.
  absl::Status SkipTo(int layer, Cancelled cancelled);

  // A suspended step goes on in its layer, with the pages that it parked.
  // Errors: cancelled.
  absl::Status Resume(Cancelled cancelled);

 private:
  // The step whose pages are laid out.
  struct Step {
    PagesRead reads;
    Phase phase = Phase::kVerify;
    int64_t first_written = 0;
    PageList away = {};  // pages that exist below alone, in order
    int64_t host = 0;    // the first of `away`, which are the host's
    std::vector<int64_t> place = {};  // [page] in a buffer; -1: none
    int asked = 0;                    // layers whose fetch has been submitted
    std::array<bool, 2> there = {};   // [layer]: it was fetched ahead
    int parked_layer = -1;            // -1: not suspended
    PageList parked = {};
  };

  KvTier::Buffer& BufferOf(int64_t layer) { return tier_.BufferOf(layer); }
  int Layers() const { return tier_.shape.layers; }
  CopyEngine& engine() { return *tier_.engine; }
  DevicePtr<std::byte> Place(int64_t layer, int64_t place) const;
  int Ahead() const;
  int64_t HostsOf(const PageList& pages, int64_t host_end) const;
  bool IsThere(int layer) const;
  void Ask(int layer);
  void Fetch(int layer);
  void AskAhead(int layer);
  absl::Status AwaitBuffers(Cancelled cancelled);
  absl::Status AwaitFetched(int layer, Cancelled cancelled);

  KvTier& tier_;
  PageTable& pages_;
  Residency& residency_;
  KvMoves& moves_;
  Step step_;
  // The pages that the next step will stage, the number of its layers that have
  // been asked for, the pages asked for in each, and Residency::lost()
  // at that time.
  PageList next_;
  int64_t next_host_ = 0;  // the first of them, which will be the host's
  int ahead_ = 0;
  std::array<PageList, 2> asked_ahead_;  // [layer]
  int64_t lost_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_STAGING_H_
