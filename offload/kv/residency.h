#ifndef TIERCEL_OFFLOAD_KV_RESIDENCY_H_
#define TIERCEL_OFFLOAD_KV_RESIDENCY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/kv/kv_layout.h"
#include "offload/kv/kv_tier.h"
#include "offload/tier/ledger.h"

namespace tiercel {

// Where each page of one sequence is: its slot below, in the host tier or on
// disk, its slot on the device if it has one, and whether what it holds is
// below.
//
//   open      being written: on the device, in all layers where it exists
//   closed    full; on its way down, or there; on the device until its place is
//             wanted
//   resident  one of the first TierShape::resident_pages: on the device for
//             good, and below like all others
//   newest    one of the last TierShape::newest_pages before the open one: on
//             the device until the sequence has grown beyond it
//
// The device has slots for one sequence, which it shares with its forks: a step
// takes what it needs from the others, and their pages, open ones too, are
// below until it is their turn.
//
// Nothing leaves the device before it is below: what got lost on its way down
// is sent again.
class Residency {
 public:
  using Ticket = CopyEngine::Ticket;
  using Cancelled = CopyEngine::Cancelled;
  using MayLeave = absl::FunctionRef<bool(int64_t page)>;

  struct Page {
    PageSlot place = {};  // below
    int64_t device = -1;  // -1: not on the device but for a step's staging
    int layers = 0;       // the first so many in which it exists
    bool below = false;   // what exists is there, or will be, by `down`
    Ticket down = 0;
  };

  // The sequence begins in page `first_page`. `moves` counts, and outlives
  // this.
  Residency(KvTier& tier, int64_t first_page, KvMoves& moves)
      : tier_(tier), first_page_(first_page), moves_(moves) {
    tier_.sequences.push_back(this);
  }
  ~Residency();
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  int64_t size() const { return static_cast<int64_t>(pages_.size()); }
  Page& At(int64_t page) { return pages_[static_cast<size_t>(page)]; }
  const Page& At(int64_t page) const {
    return pages_[static_cast<size_t>(page)];
  }
  bool OnDevice(int64_t page) const { return At(page).device >= 0; }
  bool IsResident(int64_t page) const {
    return page < tier_.shape.resident_pages;
  }
  // What the page would be if the sequence ended at `end`.
  bool IsNewest(int64_t page, int64_t end) const {
    return page >= end / kPageTokens - first_page_ - tier_.shape.newest_pages;
  }
  bool IsFull(int64_t page, int64_t end) const {
    return (first_page_ + page + 1) * kPageTokens <= end;
  }
  bool IsClosed(int64_t page, int64_t end) const {
    return OnDevice(page) && !IsResident(page) && IsFull(page, end);
  }
  bool IsStale(int64_t page, int64_t end) const {
    return IsClosed(page, end) && !IsNewest(page, end);
  }

  // Copies count as this station's from now on.
  void ChargeTo(Station station) { station_ = station; }

  // A step of this sequence begins or goes on: until Rest none of its pages
  // leaves for another sequence, and from then on those of others leave first.
  void TakeTurn();
  void Rest() { at_work_ = false; }

  // Whether `count` slots of the device are free, now that pages have left:
  // those of this sequence that may, the first of them first, then those that
  // others have there and this one has not. Errors: copy_failed, cancelled.
  absl::StatusOr<bool> MakeRoom(int64_t count, MayLeave may_leave,
                                Cancelled cancelled);

  // New pages up to `count`. Those that are to be on disk are in `text`, if
  // there is one: slot i is page i. Errors: out_of_memory.
  absl::Status Grow(int64_t count,
                    const std::shared_ptr<PageFile>& text = nullptr);
  // Only the first `keep` pages are there from now on.
  void Shrink(int64_t keep);

  // Readies a page of a sequence that ends at `end` to be written on the
  // device. `exists`: it holds positions, which come up if need be, and what a
  // fork shares of it becomes two. Errors: out_of_memory, copy_failed,
  // device_failed, cancelled.
  absl::Status Open(int64_t page, bool exists, int64_t end,
                    Cancelled cancelled);
  // Brings up a page that exists and is full, to stay. Errors: the same.
  absl::Status Bring(int64_t page, int64_t end, Cancelled cancelled);
  // Brings up what others have taken the place of: of a sequence that ends at
  // `end` the resident pages and the newest; or a page of a step that was
  // stopped, for which none of the step's others leaves. Errors: the same.
  absl::Status BringBack(int64_t end, Cancelled cancelled);
  absl::Status BringAgain(int64_t page, Cancelled cancelled);
  // A page that is full on the device leaves it, once it is below.
  // Errors: copy_failed, cancelled.
  absl::Status Leave(int64_t page, Cancelled cancelled);
  // Makes sure that what a full page holds is below. Errors: copy_failed,
  // cancelled.
  absl::Status Settle(int64_t page, Cancelled cancelled) {
    return Settle(page, *this, cancelled);
  }
  // Puts one layer of a page below, past the link: what is on the device of it
  // is not changed. Errors: out_of_memory; disk_full, io_error.
  absl::Status PutBelow(int64_t page, int layer, const std::byte* bytes);
  // Sends a page down that is full now.
  Ticket Close(int64_t page) { return Close(page, *this); }
  // A step that stops has written on a page that is on the device.
  void NoteWritten(int64_t page) { At(page).below = false; }
  // After a step that wrote pages from `first` on and ends at `end`: those that
  // are full are below, or on their way; `down` is that of the first.
  void NoteBelow(int64_t first, int64_t end, Ticket down);

  // Has `fork`, empty, share the first `count` pages.
  void ShareWith(Residency& fork, int64_t count);

  // How often a page that was thought to be below was not: what was fetched of
  // it since is not what it holds.
  int64_t lost() const { return lost_; }
  int64_t HostBytes() const;  // of the host tier
  // The first page that is on disk and cannot be read there; size(): none.
  int64_t FirstDamaged() const;

  // A copy of one layer's page, between below and `device`, which is counted.
  Transfer Between(Direction direction, int64_t page, int layer,
                   std::byte* device);
  // What Between gives, not counted: parts of the copy may be made alone.
  Transfer PlaceOf(Direction direction, int64_t page, int layer,
                   std::byte* device) const;
  std::byte* OnDevicePage(int layer, int64_t page) {
    return tier_.slots.Page(layer, At(page).device);
  }

 private:
  // What goes down is the doing of `payer`, whose step it is for.
  Ticket Close(int64_t page, Residency& payer);
  absl::Status Settle(int64_t page, Residency& payer, Cancelled cancelled);
  absl::StatusOr<bool> TakeFromOthers(bool below, Cancelled cancelled);
  bool HasSlot(int64_t page, int64_t slot) const {
    return page < size() && At(page).device == slot;
  }
  absl::StatusOr<int64_t> TakeDeviceSlot(int64_t end, Cancelled cancelled);
  absl::Status NoRoom() const;
  absl::Status Reopen(int64_t page, int64_t slot, Cancelled cancelled);
  absl::Status Own(Page& page, int64_t end, Cancelled cancelled);
  void Release(Page& page);

  CopyEngine& engine() { return *tier_.engine; }

  KvTier& tier_;
  const int64_t first_page_;
  KvMoves& moves_;
  Station station_ = Station::kVerify;
  std::vector<Page> pages_;
  bool at_work_ = false;
  int64_t lost_ = 0;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_RESIDENCY_H_
