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
  pages_.reserve(static_cast<size_t>(count));
  while (size() < count) {
    if (text != nullptr && tier_.shape.IsOnDisk(size())) {
      pages_.push_back({.place = {size(), text}});
      continue;
    }
    ASSIGN_OR_RETURN(PageSlot place, tier_.TakeBelow(size()));
    pages_.push_back({.place = std::move(place)});
  }
  return absl::OkStatus();
}

void Residency::Shrink(int64_t keep) {
  while (size() > keep) {
    Page& page = pages_.back();
    (void)engine().Wait(page.down);
    if (page.device >= 0) Release(page);
    page.place.Release(tier_.pool);
    pages_.pop_back();
  }
}

// ---- A page that is written ----

absl::Status Residency::Open(int64_t index, bool exists, int64_t end,
                             Cancelled cancelled) {
  Page& page = At(index);
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
  return Own(page, end, cancelled);
}

absl::Status Residency::Bring(int64_t index, int64_t end, Cancelled cancelled) {
  const absl::StatusOr<int64_t> slot = TakeDeviceSlot(end, cancelled);
  return slot.ok() ? Reopen(index, *slot, cancelled) : slot.status();
}

absl::Status Residency::BringBack(int64_t end, Cancelled cancelled) {
  const auto stale = [&](int64_t page) { return IsStale(page, end); };
  for (int64_t i = 0; i < size(); ++i) {
    const bool stays = IsResident(i) || IsNewest(i, end);
    if (!stays || OnDevice(i) || !IsFull(i, end)) continue;
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
  Page& page = At(index);
  page.device = slot;
  absl::Cleanup undo = [&] { Release(page); };
  std::vector<Transfer> transfers;
  transfers.reserve(static_cast<size_t>(page.layers));
  for (int layer = 0; layer < page.layers; ++layer) {
    transfers.push_back(Between(Direction::kHostToDevice, index, layer,
                                OnDevicePage(layer, index)));
  }
  moves_.reopened_pages += page.layers;
  const absl::Status status = engine().WaitOrDrop(
      engine().Submit(phase_, std::move(transfers)), cancelled);
  if (status.ok()) std::move(undo).Cancel();
  return status;
}

absl::Status Residency::Own(Page& page, int64_t end, Cancelled cancelled) {
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
    ASSIGN_OR_RETURN(PageSlot own, tier_.TakeBelow(&page - pages_.data()));
    std::exchange(page.place, std::move(own)).Release(tier_.pool);
    page.below = false;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Residency::TakeDeviceSlot(int64_t end,
                                                  Cancelled cancelled) {
  const auto stale = [&](int64_t page) { return IsStale(page, end); };
  const auto closed = [&](int64_t page) { return IsClosed(page, end); };
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
  for (int64_t i = 0; i < size() && tier_.slots.free() < count; ++i) {
    if (!OnDevice(i) || !may_leave(i)) continue;
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
    for (int64_t i = other->size() - 1; i >= 0; --i) {
      const int64_t slot = other->At(i).device;
      if (slot < 0) continue;
      std::vector<Residency*> sharers;
      bool stays = false;
      for (Residency* sequence : tier_.sequences) {
        if (!sequence->HasSlot(i, slot)) continue;
        stays = stays || sequence->at_work_;
        stays = stays || (below && !sequence->At(i).below);
        sharers.push_back(sequence);
      }
      if (stays) continue;
      for (Residency* sharer : sharers) {
        RETURN_IF_ERROR(sharer->Settle(i, *this, cancelled));
        sharer->Release(sharer->At(i));
      }
      return true;
    }
  }
  return false;
}

// ---- A page that is full ----

Residency::Ticket Residency::Close(int64_t index, Residency& payer) {
  const Page& page = At(index);
  std::vector<Transfer> transfers;
  transfers.reserve(static_cast<size_t>(page.layers));
  for (int layer = 0; layer < page.layers; ++layer) {
    transfers.push_back(PlaceOf(Direction::kDeviceToHost, index, layer,
                                OnDevicePage(layer, index)));
  }
  payer.moves_.closed_pages += page.layers;
  if (page.place.file != nullptr) payer.moves_.spilled_pages += page.layers;
  return engine().Submit(payer.phase_, std::move(transfers));
}

void Residency::NoteBelow(int64_t first, int64_t end, Ticket down) {
  for (int64_t i = first; i < size(); ++i) {
    At(i).below = IsFull(i, end);
    At(i).down = i == first ? down : 0;
  }
}

absl::Status Residency::Leave(int64_t index, Cancelled cancelled) {
  RETURN_IF_ERROR(Settle(index, cancelled));
  Release(At(index));
  return absl::OkStatus();
}

absl::Status Residency::PutBelow(int64_t index, int layer,
                                 const std::byte* bytes) {
  const PageSlot& at = At(index).place;
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
  Page& page = At(index);
  if (page.below) {
    const absl::Status status = engine().Wait(page.down, cancelled);
    if (status.ok() || ClassOf(status) == ErrorClass::kCancelled) return status;
  }
  page.below = false;
  ++lost_;
  page.down = Close(index, payer);
  RETURN_IF_ERROR(engine().Wait(page.down, cancelled));
  page.below = true;
  return absl::OkStatus();
}

void Residency::Release(Page& page) {
  tier_.slots.Release(std::exchange(page.device, -1));
}

// ---- The sequence ----

void Residency::ShareWith(Residency& fork, int64_t count) {
  fork.pages_.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    Page& page = At(i);
    // Wait returns an error once, and both sequences must know of it.
    page.below = engine().Wait(page.down).ok() && page.below;
    page.down = 0;
    page.place.AddReference(tier_.pool);
    if (page.device >= 0) tier_.slots.AddReference(page.device);
    fork.pages_.push_back(page);
  }
}

int64_t Residency::HostBytes() const {
  int64_t below = 0;
  for (const Page& page : pages_) {
    if (page.place.file != nullptr) continue;
    below += page.below ? page.layers : 0;
  }
  return below * tier_.shape.layout.PageBytes();
}

int64_t Residency::FirstDamaged() const {
  const auto damaged =
      std::find_if(pages_.begin(), pages_.end(), [](const Page& page) {
        const PageSlot& at = page.place;
        return at.file != nullptr && at.file->IsDamaged(at.slot);
      });
  return damaged - pages_.begin();
}

Transfer Residency::Between(Direction direction, int64_t page, int layer,
                            std::byte* device) {
  const bool up = direction == Direction::kHostToDevice;
  if (At(page).place.file != nullptr) {
    ++(up ? moves_.disk_pages : moves_.spilled_pages);
  }
  return PlaceOf(direction, page, layer, device);
}

Transfer Residency::PlaceOf(Direction direction, int64_t page, int layer,
                            std::byte* device) const {
  const PageSlot& at = At(page).place;
  if (at.file != nullptr) {
    return {.direction = direction,
            .device = device,
            .bytes = tier_.shape.layout.PageBytes(),
            .file = at.file,
            .layer = layer,
            .slot = at.slot};
  }
  const PagePool::Location location = tier_.pool.LocationOf(layer, at.slot);
  return {.direction = direction,
          .host = location.region,
          .offset = location.offset,
          .device = device,
          .bytes = tier_.shape.layout.PageBytes()};
}

}  // namespace tiercel
