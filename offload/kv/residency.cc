#include "offload/kv/residency.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {

absl::Status Residency::Grow(int64_t count,
                             const std::shared_ptr<PageFile>& text) {
  pages_.reserve(static_cast<size_t>(count));
  while (size() < count) {
    if (text != nullptr && tier_.shape.IsOnDisk(size())) {
      pages_.push_back({.place = {size(), text}});
      continue;
    }
    absl::StatusOr<PageSlot> place = tier_.TakeBelow(size());
    if (!place.ok()) return place.status();
    pages_.push_back({.place = *std::move(place)});
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
      if (absl::Status s = Bring(index, end, cancelled); !s.ok()) return s;
    } else {
      const absl::StatusOr<int64_t> slot = TakeDeviceSlot(end, cancelled);
      if (!slot.ok()) return slot.status();
      page.device = *slot;
    }
  }
  if (!exists) return absl::OkStatus();
  // Cut by a truncation, it may still be on its way down.
  const absl::Status sent = engine().Wait(page.down, cancelled);
  if (ClassOf(sent) == ErrorClass::kCancelled) return sent;
  page.down = 0;
  page.below = page.below && sent.ok();
  return Own(page, end, cancelled);
}

absl::Status Residency::Bring(int64_t index, int64_t end, Cancelled cancelled) {
  const absl::StatusOr<int64_t> slot = TakeDeviceSlot(end, cancelled);
  if (!slot.ok()) return slot.status();
  Page& page = At(index);
  page.device = *slot;
  absl::Cleanup undo = [&] { Release(page); };
  if (absl::Status s = Reopen(index, cancelled); !s.ok()) return s;
  std::move(undo).Cancel();
  return absl::OkStatus();
}

// Whatever comes of it, nothing is on the way after it: its place may be given
// back.
absl::Status Residency::Reopen(int64_t index, Cancelled cancelled) {
  std::vector<Transfer> transfers;
  transfers.reserve(static_cast<size_t>(At(index).layers));
  for (int layer = 0; layer < At(index).layers; ++layer) {
    transfers.push_back(Between(Direction::kHostToDevice, index, layer,
                                OnDevicePage(layer, index)));
  }
  moves_.reopened_pages += At(index).layers;
  return engine().WaitOrDrop(engine().Submit(station_, std::move(transfers)),
                             cancelled);
}

absl::Status Residency::Own(Page& page, int64_t end, Cancelled cancelled) {
  if (tier_.slots.IsShared(page.device)) {
    const absl::StatusOr<int64_t> own = TakeDeviceSlot(end, cancelled);
    if (!own.ok()) return own.status();
    for (int layer = 0; layer < page.layers; ++layer) {
      if (absl::Status s = tier_.slots.CopyPage(layer, page.device, *own);
          !s.ok()) {
        tier_.slots.Release(*own);
        return s;
      }
    }
    tier_.slots.Release(std::exchange(page.device, *own));
  }
  if (page.place.IsShared(tier_.pool)) {
    absl::StatusOr<PageSlot> own = tier_.TakeBelow(&page - pages_.data());
    if (!own.ok()) return own.status();
    std::exchange(page.place, *std::move(own)).Release(tier_.pool);
    page.below = false;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Residency::TakeDeviceSlot(int64_t end,
                                                  Cancelled cancelled) {
  int64_t slot = tier_.slots.Take();
  // Steps in place may have left closed pages, the first of them the stalest.
  for (int64_t i = 0; slot < 0 && i < size(); ++i) {
    if (!IsClosed(i, end)) continue;
    if (absl::Status s = Leave(i, cancelled); !s.ok()) return s;
    slot = tier_.slots.Take();
  }
  // A fork found the slots taken: resident pages of this sequence make room,
  // the last of them first.
  for (int64_t i = tier_.shape.resident_pages - 1; slot < 0 && i >= 0; --i) {
    if (i >= size() || !OnDevice(i) || !IsFull(i, end)) continue;
    if (absl::Status s = Leave(i, cancelled); !s.ok()) return s;
    slot = tier_.slots.Take();
  }
  if (slot >= 0) return slot;
  return MemoryError("out_of_memory",
                     absl::StrCat("device pages: all ", tier_.slots.count(),
                                  " are in use by other sequences"));
}

// ---- A page that is full ----

Residency::Ticket Residency::Close(int64_t index) {
  std::vector<Transfer> transfers;
  transfers.reserve(static_cast<size_t>(At(index).layers));
  for (int layer = 0; layer < At(index).layers; ++layer) {
    transfers.push_back(Between(Direction::kDeviceToHost, index, layer,
                                OnDevicePage(layer, index)));
  }
  moves_.closed_pages += At(index).layers;
  return engine().Submit(station_, std::move(transfers));
}

void Residency::NoteBelow(int64_t first, int64_t end, Ticket down) {
  for (int64_t i = first; i < size(); ++i) {
    At(i).below = IsFull(i, end);
    At(i).down = i == first ? down : 0;
  }
}

absl::Status Residency::Leave(int64_t index, Cancelled cancelled) {
  if (absl::Status s = Settle(index, cancelled); !s.ok()) return s;
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
  return place.region->Write(
      place.offset, bytes, static_cast<size_t>(tier_.shape.layout.PageBytes()));
}

absl::Status Residency::Settle(int64_t index, Cancelled cancelled) {
  Page& page = At(index);
  if (page.below) {
    const absl::Status status = engine().Wait(page.down, cancelled);
    if (status.ok() || ClassOf(status) == ErrorClass::kCancelled) return status;
  }
  page.below = false;
  ++lost_;
  page.down = Close(index);
  if (absl::Status s = engine().Wait(page.down, cancelled); !s.ok()) return s;
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
    // An error is told once, and would concern both.
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
