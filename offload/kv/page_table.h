#ifndef TIERCEL_OFFLOAD_KV_PAGE_TABLE_H_
#define TIERCEL_OFFLOAD_KV_PAGE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/kv/kv_layout.h"
#include "offload/kv/kv_tier.h"

namespace tiercel {

// The place of each page of one sequence: its slot below (in the host tier or
// on disk), its slot on the device if it has one, and whether its contents are
// below.
//
//   open      being written: on the device, in all layers where it exists
//   closed    full; on its way down, or there; on the device until its slot is
//             wanted
//   resident  one of the first TierShape::resident_pages: on the device for
//             good, and below like all others
//   newest    one of the last TierShape::newest_pages before the open one: on
//             the device until the sequence has grown beyond it
//
// Residency moves pages, and this notes where they are.
class PageTable {
 public:
  using Ticket = CopyEngine::Ticket;

  struct Page {
    PageSlot place = {};  // its slot below
    int64_t device = -1;  // -1: no slot; a step may have it in a buffer
    int layers = 0;       // the number of layers, from the first, that have it
    bool below = false;   // its contents are below once `down` is done
    Ticket down = 0;
    // The number of the contents that are below: no others that sequences of
    // the tier have there, or had, have the same. 0: there were none.
    int64_t contents = 0;
  };

  // The sequence begins in page `first_page`. `tier` outlives this.
  PageTable(KvTier& tier, int64_t first_page)
      : tier_(tier), first_page_(first_page) {}

  int64_t size() const { return static_cast<int64_t>(pages_.size()); }
  Page& At(int64_t page) { return pages_[static_cast<size_t>(page)]; }
  const Page& At(int64_t page) const {
    return pages_[static_cast<size_t>(page)];
  }
  bool OnDevice(int64_t page) const { return At(page).device >= 0; }
  bool IsResident(int64_t page) const {
    return page < tier_.shape.resident_pages;
  }
  // These say what the page would be if the sequence ended at `end`.
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

  // Adds a page after the last, or drops the last, whose slots the caller has
  // taken and frees. Add throws nothing if Reserve has made room.
  void Reserve(int64_t count) { pages_.reserve(static_cast<size_t>(count)); }
  void Add(Page page) { pages_.push_back(std::move(page)); }
  void DropLast() { pages_.pop_back(); }

  // Notes that a step that stops has written to a page on the device.
  void NoteWritten(int64_t page) { At(page).below = false; }
  // After a step that wrote pages from `first` on and ends at `end`, notes that
  // the full ones are below, the first of them once `down` is done.
  void NoteBelow(int64_t first, int64_t end, Ticket down);
  // Notes that a page's contents are below, and not those that were there.
  void NoteContents(int64_t page) { At(page).contents = ++tier_.last_contents; }

  // Returns the copy of one layer of a page between below and `device`; the
  // caller may make parts of it.
  Transfer CopyOf(Direction direction, int64_t page, int layer,
                  DevicePtr<std::byte> device) const;
  // The address of one layer of a page that has a slot on the device.
  DevicePtr<std::byte> OnDevicePage(int layer, int64_t page) {
    return tier_.slots.Page(layer, At(page).device);
  }

  int64_t HostBytes() const;  // bytes of pages in the host tier
  // The first page that is on disk and cannot be read there; size() if none.
  int64_t FirstDamaged() const;

 private:
  KvTier& tier_;
  const int64_t first_page_;
  std::vector<Page> pages_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_PAGE_TABLE_H_
