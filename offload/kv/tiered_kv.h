#ifndef TIERCEL_OFFLOAD_KV_TIERED_KV_H_
#define TIERCEL_OFFLOAD_KV_TIERED_KV_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "offload/kv/kv_store.h"
#include "offload/kv/kv_tier.h"
#include "offload/kv/page_table.h"
#include "offload/kv/residency.h"
#include "offload/kv/staging.h"

namespace tiercel {

// The KV of a device that is too small for it: every full page is below, in the
// host tier or, if that is too small, on disk, and a step brings each layer's
// pages to one of two buffers while the layer before it computes. PageTable
// knows the place of each page, Residency moves it there, Staging knows the
// contents of the buffers; this class decides what a step needs of them.
//
//   on the device   pages being written; the first `resident_pages`, for good;
//                   the last `newest_pages` before those; the layer that
//                   computes and the one after it
//   down            a step's pages once they are full and committed; a prompt's
//                   layer by layer, as soon as the layer is done
//   up              per layer, the pages that the view reads there and that are
//                   not on the device otherwise, but for those that the host
//                   attends to itself (HostShare); after the last two layers of
//                   a step those of the first two, for a next step with the
//                   same view
//
// A step whose view reads only pages on the device is done in place: nothing
// moves, and the pages fetched ahead wait for the step that they are for. So
// drafts over such views run while the next sweep is on its way.
//
// Positions and views alone decide which pages move; time decides nothing.
// offload/PAGES.md follows one page through all this.
class TieredKv final : public KvStore {
 public:
  TieredKv(std::shared_ptr<KvTier> tier, int64_t begin);
  ~TieredKv() override;

  absl::StatusOr<KvPages> BeginLayer(int layer, Cancelled cancelled) override;
  void EndLayer(int layer) override;
  uint64_t CopyRuns(Stream& stream, Phase phase,
                    const std::vector<KvRun>& runs) override;
  absl::Status AwaitCopies(uint64_t copies, Cancelled cancelled) override;
  absl::StatusOr<std::unique_ptr<HeldLayer>> HoldLayer(
      int layer, DevicePtr<std::byte> state, int64_t bytes,
      Cancelled cancelled) override;
  absl::StatusOr<std::unique_ptr<HeldPages>> Hold(int64_t positions,
                                                  Cancelled cancelled) override;
  absl::StatusOr<std::unique_ptr<KvStore>> Fork() override;
  bool StaysOnDisk(int64_t page) const override {
    return tier_->spill != nullptr && tier_->shape.IsOnDisk(page);
  }
  int64_t IntactLength() const override;
  KvMoves moves() const override { return moves_; }
  int64_t HostBytes() const override { return pages_.HostBytes(); }

 private:
  using Ticket = CopyEngine::Ticket;
  using PageList = StagedStep::PageList;

  // The uncommitted step.
  struct Step {
    int64_t rows = 0;
    bool in_place = true;      // it stages no pages
    std::vector<Ticket> sent;  // copies down, one for each layer of a prompt
    HostRegion state;          // saved by Suspend
  };

  CopyEngine& engine() { return *tier_->engine; }
  Staging& staging() { return *tier_->staging; }

  absl::Status BeginOwnStep(int64_t rows, Phase phase, const View& view,
                            Cancelled cancelled) override;
  absl::Status CommitOwn(int64_t rows, Cancelled cancelled) override;
  void AbandonOwn() override;
  absl::Status SuspendOwn(int layer, int64_t rows, DevicePtr<std::byte> state,
                          int64_t bytes) override;
  absl::Status ResumeOwn(DevicePtr<std::byte> state,
                         Cancelled cancelled) override;
  absl::StatusOr<int> TakeOwnLayers(GiveLayers give, DevicePtr<std::byte> state,
                                    int64_t bytes,
                                    Cancelled cancelled) override;
  void TruncateOwn(int64_t length) override;
  absl::Status LoadOwn(int64_t rows, GivePages give,
                       const std::shared_ptr<PageFile>& text,
                       Cancelled cancelled) override;

  absl::StatusOr<bool> FitsInPlace(Cancelled cancelled);
  absl::Status RetireClosedPages(Cancelled cancelled);
  absl::Status OpenPages(Cancelled cancelled);
  int64_t HostEnd() const;
  HostPages OnHost(int layer);
  void EndStep();

  const std::shared_ptr<KvTier> tier_;
  KvMoves moves_;
  PageTable pages_;
  Residency residency_;
  StagedStep staged_;           // the uncommitted step, in the buffers
  std::unique_ptr<Step> step_;  // null: none
  std::vector<DevicePtr<std::byte>> table_;       // pages of the current layer
  std::vector<DevicePtr<std::byte>> host_table_;  // ... that are the host's
  absl::Status copied_;  // error of CopyRuns on the device
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_TIERED_KV_H_
