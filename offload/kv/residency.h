#ifndef TIERCEL_OFFLOAD_KV_RESIDENCY_H_
#define TIERCEL_OFFLOAD_KV_RESIDENCY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "offload/kv/kv_tier.h"
#include "offload/kv/page_table.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// Moves the pages of one sequence (PageTable) between the device and below.
//
// The device has slots for one sequence and for the forks that the plan counts
// (TierShape), which all share: a step takes the slots that it needs from the
// sequences that do not step, and their pages, open ones too, are below until
// it is their turn.
//
// No page leaves the device before it is below: one that got lost on its way
// down is sent again.
class Residency {
 public:
  using Ticket = CopyEngine::Ticket;
  using Cancelled = CopyEngine::Cancelled;
  using MayLeave = absl::FunctionRef<bool(int64_t page)>;

  // Copies are counted in `moves`. All arguments outlive this.
  Residency(KvTier& tier, PageTable& pages, KvMoves& moves)
      : tier_(tier), pages_(pages), moves_(moves) {
    tier_.sequences.push_back(this);
  }
  ~Residency();
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  // Charges copies to this phase from now on.
  void ChargeTo(Phase phase) { phase_ = phase; }

  // A step of this sequence begins or goes on: until Rest, none of its pages
  // leaves for another sequence. From now on, pages of the others leave first.
  void TakeTurn();
  void Rest() { at_work_ = false; }

  // Makes pages leave until `count` slots of the device are free: first those
  // of this sequence that may leave, from the first page on, then those that
  // other sequences have there and this one does not. Returns false if there
  // are too few. Errors: copy_failed, cancelled.
  absl::StatusOr<bool> MakeRoom(int64_t count, MayLeave may_leave,
                                Cancelled cancelled);

  // Adds pages up to `count`. If there is a `text`, pages that belong on disk
  // are in that file: its slot i is page i. Errors: out_of_memory.
  absl::Status Grow(int64_t count,
                    const std::shared_ptr<PageFile>& text = nullptr);
  // Drops all but the first `keep` pages.
  void Shrink(int64_t keep);

  // Prepares a page of a sequence that ends at `end` for writes on the device.
  // `exists`: it holds positions already; they come up if need be, and a page
  // that is shared with a fork is copied. Errors: out_of_memory, copy_failed,
  // device_failed, cancelled.
  absl::Status Open(int64_t page, bool exists, int64_t end,
                    Cancelled cancelled);
  // Brings up a full page, which stays on the device. Errors: the same.
  absl::Status Bring(int64_t page, int64_t end, Cancelled cancelled);
  // Brings up pages whose slots other sequences have taken. BringBack: the
  // resident and the newest pages of a sequence that ends at `end`. BringAgain:
  // a page of a step that was stopped; no other page of this sequence leaves
  // for it. Errors: the same.
  absl::Status BringBack(int64_t end, Cancelled cancelled);
  absl::Status BringAgain(int64_t page, Cancelled cancelled);
  // Frees the device slot of a full page, once the page is below. Errors:
  // copy_failed, cancelled.
  absl::Status Leave(int64_t page, Cancelled cancelled);
  // Makes sure that a full page's contents are below. Errors: copy_failed,
  // cancelled.
  absl::Status Settle(int64_t page, Cancelled cancelled) {
    return Settle(page, *this, cancelled);
  }
  // Writes one layer of a page below without the link; the page's contents on
  // the device do not change. Errors: out_of_memory; disk_full, io_error.
  absl::Status PutBelow(int64_t page, int layer, const std::byte* bytes);
  // Sends down a page that has become full.
  Ticket Close(int64_t page) { return Close(page, *this); }

  // Shares the first `count` pages with `fork`, which is empty.
  void ShareWith(Residency& fork, int64_t count);

  // Returns PageTable::CopyOf, and counts the copy if that is on disk.
  Transfer Between(Direction direction, int64_t page, int layer,
                   DevicePtr<std::byte> device);

 private:
  // Pages that go down are charged to `payer`, whose step needs that.
  Ticket Close(int64_t page, Residency& payer);
  absl::Status Settle(int64_t page, Residency& payer, Cancelled cancelled);
  absl::StatusOr<bool> TakeFromOthers(bool below, Cancelled cancelled);
  bool HasSlot(int64_t page, int64_t slot) const {
    return page < pages_.size() && pages_.At(page).device == slot;
  }
  absl::StatusOr<int64_t> TakeDeviceSlot(int64_t end, Cancelled cancelled);
  absl::Status NoRoom() const;
  absl::Status Reopen(int64_t page, int64_t slot, Cancelled cancelled);
  absl::Status Own(int64_t page, int64_t end, Cancelled cancelled);
  void Release(int64_t page);

  CopyEngine& engine() { return *tier_.engine; }

  KvTier& tier_;
  PageTable& pages_;
  KvMoves& moves_;
  Phase phase_ = Phase::kVerify;
  bool at_work_ = false;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_RESIDENCY_H_
