#include "offload/kv/residency.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

Residency::~Residency() {
  Shrink(0);
  std::vector<Residency*>& all = tier_.sequences;
  all.erase(std::find(all.begin(), all.end(), this));
}

absl::Status Residency::Grow(int64_t count,
                             const std::shared_ptr<PageFile>& text) {
  pages_.Reserve(count);
  while (pages_.size() < count) {
    const int64_t next = pages_.size();
    if (text != nullptr && tier_.shape.IsOnDisk(next)) {
      pages_.Add({.place = {next, text}});
      continue;
    }
    ASSIGN_OR_RETURN(PageSlot place, tier_.TakeBelow(next));
    pages_.Add({.place = std::move(place)});
  }
  return absl::OkStatus();
}

void Residency::Shrink(int64_t keep) {
  while (pages_.size() > keep) {
    const int64_t last = pages_.size() - 1;
    PageTable::Page& page = pages_.At(last);
    (void)engine().Wait(page.down);
    if (page.device >= 0) Release(last);
    page.place.Release(tier_.pool);
    pages_.DropLast();
  }
}

// ---- A page that is written ----

absl::Status Residency::Open(int64_t index, bool exists, int64_t end,
                             Cancelled cancelled) {
  PageTable::Page& page = pages_.At(index);
  if (page.device < 0) {
    if (exists) {
      RETURN_IF_ERROR(Bring(index, end, cancelled));
    } else {
      ASSIGN_OR_RETURN(page.device, TakeDeviceSlot(end, cancelled));
    }
  }
  if (!exists) return absl::OkStatus();
  // A page that a truncation has cut may still be on its way down.
  const absl::Status sent = engine().Wait(page.down, cancelled);
  if (ClassOf(sent) == ErrorClass::kCancelled) return sent;
  page.down = 0;
  page.below = page.below && sent.ok();
  return Own(index, end, cancelled);
}

absl::Status Residency::Bring(int64_t index, int64_t end, Cancelled cancelled) {
  const absl::StatusOr<int64_t> slot = TakeDeviceSlot(end, cancelled);
  return slot.ok() ? Reopen(index, *slot, cancelled) : slot.status();
}

absl::Status Residency::BringBack(int64_t end, Cancelled cancelled) {
  const auto stale = [&](int64_t page) { return pages_.IsStale(page, end); };
  for (int64_t i = 0; i < pages_.size(); ++i) {
    const bool stays = pages_.IsResident(i) || pages_.IsNewest(i, end);
    if (!stays || pages_.OnDevice(i) || !pages_.IsFull(i, end)) continue;
    ASSIGN_OR_RETURN(const bool room, MakeRoom(1, stale, cancelled));
    if (!room) return NoRoom();
    RETURN_IF_ERROR(Reopen(i, tier_.slots.Take(), cancelled));
  }
  return absl::OkStatus();
}

absl::Status Residency::BringAgain(int64_t index, Cancelled cancelled) {
  ASSIGN_OR_RETURN(const bool room,
                   MakeRoom(
                       1, [](int64_t) { return false; }, cancelled));
  return room ? Reopen(index, tier_.slots.Take(), cancelled) : NoRoom();
}

// On return no copy is under way, even after an error: the slot may be freed.
absl::Status Residency::Reopen(int64_t index, int64_t slot,
                               Cancelled cancelled) {
  PageTable::Page& page = pages_.At(index);
  page.device = slot;
  absl::Cleanup undo = [&] { Release(index); };
  std::vector<Transfer> transfers;
  transfers.reserve(static_cast<size_t>(page.layers));
  for (int layer = 0; layer < page.layers; ++layer) {
    transfers.push_back(Between(Direction::kHostToDevice, index, layer,
                                pages_.OnDevicePage(layer, index)));
  }
  moves_.reopened_pages += page.layers;
  const absl::Status status = engine().WaitOrDrop(
      engine().Submit(phase_, std::move(transfers)), cancelled);
  if (status.ok()) std::move(undo).Cancel();
  return status;
}

absl::Status Residency::Own(int64_t index, int64_t end, Cancelled cancelled) {
  PageTable::Page& page = pages_.At(index);
  if (tier_.slots.IsShared(page.device)) {
    ASSIGN_OR_RETURN(const int64_t own, TakeDeviceSlot(end, cancelled));
    for (int layer = 0; layer < page.layers; ++layer) {
      if (absl::Status s = tier_.slots.CopyPage(layer, page.device, own);
          !s.ok()) {
        tier_.slots.Release(own);
        return s;
      }
    }
    tier_.slots.Release(std::exchange(page.device, own));
  }
  if (page.place.IsShared(tier_.pool)) {
    ASSIGN_OR_RETURN(PageSlot own, tier_.TakeBelow(index));
    std::exchange(page.place, std::move(own)).Release(tier_.pool);
    page.below = false;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Residency::TakeDeviceSlot(int64_t end,
                                                  Cancelled cancelled) {
  const auto stale = [&](int64_t page) { return pages_.IsStale(page, end); };
  const auto closed = [&](int64_t page) { return pages_.IsClosed(page, end); };
  for (const MayLeave may_leave : {MayLeave(stale), MayLeave(closed)}) {
    ASSIGN_OR_RETURN(const bool room, MakeRoom(1, may_leave, cancelled));
    if (room) return tier_.slots.Take();
  }
  return NoRoom();
}

absl::Status Residency::NoRoom() const {
  return MemoryError("out_of_memory",
                     absl::StrCat("device pages: all ", tier_.slots.count(),
                                  " are in use by steps of other sequences"));
}

// ---- The slots that sequences share ----

void Residency::TakeTurn() {
  at_work_ = true;
  std::vector<Residency*>& all = tier_.sequences;
  const auto own = std::find(all.begin(), all.end(), this);
  std::rotate(own, own + 1, all.end());
}

absl::StatusOr<bool> Residency::MakeRoom(int64_t count, MayLeave may_leave,
                                         Cancelled cancelled) {
  // Steps in place may have left closed pages; the first is the stalest.
  for (int64_t i = 0; i < pages_.size() && tier_.slots.free() < count; ++i) {
    if (!pages_.OnDevice(i) || !may_leave(i)) continue;
    RETURN_IF_ERROR(Leave(i, cancelled));
  }
  for (const bool below : {true, false}) {
    while (tier_.slots.free() < count) {
      const absl::StatusOr<bool> taken = TakeFromOthers(below, cancelled);
      if (!taken.ok()) return taken;
      if (!*taken) break;
    }
  }
  return tier_.slots.free() >= count;
}

// Frees a slot that no sequence at work has: one of the sequence that stepped
// longest ago, its last page first, so that the sinks, which every view reads,
// stay longest. `below`: only a page that need not go down for it. A page has
// the same number in all sequences that share it. Returns false if there is no
// such slot.
absl::StatusOr<bool> Residency::TakeFromOthers(bool below,
                                               Cancelled cancelled) {
  for (const Residency* other : tier_.sequences) {
    for (int64_t i = other->pages_.size() - 1; i >= 0; --i) {
      const int64_t slot = other->pages_.At(i).device;
      if (slot < 0) continue;
      std::vector<Residency*> sharers;
      bool stays = false;
      for (Residency* sequence : tier_.sequences) {
        if (!sequence->HasSlot(i, slot)) continue;
        stays = stays || sequence->at_work_;
        stays = stays || (below && !sequence->pages_.At(i).below);
        sharers.push_back(sequence);
      }
      if (stays) continue;
      for (Residency* sharer : sharers) {
        RETURN_IF_ERROR(sharer->Settle(i, *this, cancelled));
        sharer->Release(i);
      }
      return true;
    }
  }
  return false;
}

// ---- A page that is full ----

Residency::Ticket Residency::Close(int64_t index, Residency& payer) {
  const PageTable::Page& page = pages_.At(index);
  std::vector<Transfer> transfers;
  transfers.reserve(static_cast<size_t>(page.layers));
  for (int layer = 0; layer < page.layers; ++layer) {
    transfers.push_back(pages_.CopyOf(Direction::kDeviceToHost, index, layer,
                                      pages_.OnDevicePage(layer, index)));
  }
  payer.moves_.closed_pages += page.layers;
  if (page.place.file != nullptr) payer.moves_.spilled_pages += page.layers;
  return engine().Submit(payer.phase_, std::move(transfers));
}

absl::Status Residency::Leave(int64_t index, Cancelled cancelled) {
  RETURN_IF_ERROR(Settle(index, cancelled));
  Release(index);
  return absl::OkStatus();
}

absl::Status Residency::PutBelow(int64_t index, int layer,
                                 const std::byte* bytes) {
  const PageSlot& at = pages_.At(index).place;
  if (at.file != nullptr) {
    ++moves_.spilled_pages;
    return at.file->Write(layer, at.slot, bytes);
  }
  const PagePool::Location place = tier_.pool.LocationOf(layer, at.slot);
  place.region->Write(place.offset, bytes,
                      static_cast<size_t>(tier_.shape.layout.PageBytes()));
  return absl::OkStatus();
}

absl::Status Residency::Settle(int64_t index, Residency& payer,
                               Cancelled cancelled) {
  PageTable::Page& page = pages_.At(index);
  if (page.below) {
    const absl::Status status = engine().Wait(page.down, cancelled);
    if (status.ok() || ClassOf(status) == ErrorClass::kCancelled) return status;
  }
  page.below = false;
  pages_.NoteContents(index);
  page.down = Close(index, payer);
  RETURN_IF_ERROR(engine().Wait(page.down, cancelled));
  page.below = true;
  return absl::OkStatus();
}

void Residency::Release(int64_t page) {
  tier_.slots.Release(std::exchange(pages_.At(page).device, -1));
}

// ---- The sequence ----

void Residency::ShareWith(Residency& fork, int64_t count) {
  fork.pages_.Reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    PageTable::Page& page = pages_.At(i);
    // Wait returns an error once, and both sequences must know of it.
    page.below = engine().Wait(page.down).ok() && page.below;
    page.down = 0;
    page.place.AddReference(tier_.pool);
    if (page.device >= 0) tier_.slots.AddReference(page.device);
    fork.pages_.Add(page);
  }
}

Transfer Residency::Between(Direction direction, int64_t page, int layer,
                            DevicePtr<std::byte> device) {
  const bool up = direction == Direction::kHostToDevice;
  if (pages_.At(page).place.file != nullptr) {
    ++(up ? moves_.disk_pages : moves_.spilled_pages);
  }
  return pages_.CopyOf(direction, page, layer, device);
}

}  // namespace tiercel
