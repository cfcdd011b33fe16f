#ifndef TIERCEL_OFFLOAD_KV_TIERED_KV_H_
#define TIERCEL_OFFLOAD_KV_TIERED_KV_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "offload/kv/kv_store.h"
#include "offload/kv/kv_tier.h"

namespace tiercel {

// The KV of a device that is too small for it: every full page is in the host
// tier, and a step brings each layer's pages to one of two staging buffers
// while the layer before it computes.
//
//   on the device   pages being written; the first `resident_pages`, for good;
//                   the layer that computes and the one after it
//   down            a step's pages once they are full and committed; a prompt's
//                   layer by layer, as soon as the layer is done
//   up              per layer, the pages that the view reads there and that are
//                   not on the device otherwise; after the last two layers of a
//                   step those of the first two, for a next step with the same
//                   view
//
// A step whose view reads nothing but what is on the device is done in place:
// nothing moves, and what was fetched ahead waits for the step it is for. So
// drafts over such views run while the next sweep is on its way.
//
// Which pages move is decided by positions and views alone (time decides
// nothing).
class TieredKv final : public KvStore {
 public:
  TieredKv(std::shared_ptr<KvTier> tier, int64_t begin);
  ~TieredKv() override;

  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override;
  void EndLayer(int layer) override;
  uint64_t CopyRuns(Station station, const std::vector<KvRun>& runs) override;
  absl::Status AwaitCopies(uint64_t copies, Cancelled cancelled) override;
  absl::StatusOr<std::unique_ptr<KvStore>> Fork() override;
  KvMoves moves() const override { return moves_; }
  int64_t HostBytes() const override;

 private:
  using Ticket = CopyEngine::Ticket;
  using PageList = std::vector<int64_t>;

  struct Page {
    int64_t host = -1;
    int64_t device = -1;  // -1: not on the device but for a step's staging
    bool below = false;   // the host tier has (or will, by `down`) what exists
    Ticket down = 0;
  };

  // The uncommitted step.
  struct Step {
    Station station = Station::kVerify;
    int64_t rows = 0;
    bool prompt = false;
    bool in_place = false;      // stages nothing
    int64_t first_written = 0;  // page
    // [layer, or one if all are alike][page]: what the view reads; empty: all.
    std::vector<std::vector<uint8_t>> read;
    PageList away;                   // pages that exist below alone, in order
    std::vector<int64_t> place;      // [page] in the staging buffer; -1: none
    int asked = 0;                   // layers whose fetch has been submitted
    std::array<bool, 2> there = {};  // layers that were fetched ahead
    std::vector<Ticket> sent;        // what a prompt's layers sent down
    // Suspend's
    int layer = -1;  // -1: not suspended
    PageList parked;
    HostRegion state;
  };

  Page& At(int64_t page) { return pages_[static_cast<size_t>(page)]; }
  int64_t NumPages() const { return static_cast<int64_t>(pages_.size()); }
  bool IsResident(int64_t page) const {
    return page < tier_->shape.resident_pages;
  }
  bool IsFull(int64_t page, int64_t end) const {
    return (FirstPage() + page + 1) * kPageTokens <= end;
  }
  // On the device only until its place is wanted.
  bool IsClosed(int64_t page) const {
    return pages_[static_cast<size_t>(page)].device >= 0 && !IsResident(page) &&
           IsFull(page, end_);
  }
  CopyEngine& engine() { return *tier_->engine; }

  absl::Status BeginOwnStep(int64_t rows, Station station, const View& view,
                            Cancelled cancelled) override;
  absl::Status CommitOwn(int64_t rows, Cancelled cancelled) override;
  void AbandonOwn() override;
  absl::Status SuspendOwn(int layer, int64_t rows, std::byte* state,
                          int64_t bytes) override;
  absl::Status ResumeOwn(std::byte* state, Cancelled cancelled) override;
  void TruncateOwn(int64_t length) override;

  absl::StatusOr<bool> FitsInPlace(Step& step, Cancelled cancelled);
  absl::Status PrepareStaging(Cancelled cancelled);
  absl::Status AwaitStaging(Cancelled cancelled);
  absl::Status RetireClosedPages(bool ahead, Cancelled cancelled);
  absl::Status OpenPages(Cancelled cancelled);
  absl::Status OwnOpenPage(Page& page, Cancelled cancelled);
  absl::Status LayOutStaging();
  absl::StatusOr<int64_t> TakeDeviceSlot(Cancelled cancelled);
  absl::Status Settle(Page& page, Cancelled cancelled);
  void LeaveDevice(Page& page);
  void DropPages(int64_t keep);
  static bool Reads(const Step& step, int layer, int64_t page);
  static bool Reads(const Step& step, int64_t page);  // in some layer
  static bool IsThere(const Step& step, int layer);
  void EndStep();
  void Ask(int layer);
  void Fetch(int layer);
  void AskAhead(int layer);
  absl::Status AwaitFetched(int layer, Cancelled cancelled);

  Ticket SendDown(const PageList& pages, int layer);
  Ticket SendDownAllLayers(int64_t page);
  absl::Status Reopen(int64_t page, Cancelled cancelled);
  absl::Status WaitOrDrop(Ticket ticket, Cancelled cancelled);
  Transfer Between(Direction direction, int64_t page, int layer,
                   std::byte* device) const;
  std::byte* StagedPage(int layer, int64_t place);

  const std::shared_ptr<KvTier> tier_;
  std::vector<Page> pages_;
  std::unique_ptr<Step> step_;  // null: none
  // Pages that the next step will stage, how many of its layers have been asked
  // for, and which of the pages were.
  PageList next_;
  int ahead_ = 0;
  std::array<PageList, 2> asked_ahead_;  // [layer]
  KvMoves moves_;
  std::vector<std::byte*> table_;  // of the current layer
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_TIERED_KV_H_
