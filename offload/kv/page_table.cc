#include "offload/kv/page_table.h"

#include <algorithm>

namespace tiercel {

void PageTable::NoteBelow(int64_t first, int64_t end, Ticket down) {
  for (int64_t i = first; i < size(); ++i) {
    At(i).below = IsFull(i, end);
    if (At(i).below) NoteContents(i);
    At(i).down = i == first ? down : 0;
  }
}

int64_t PageTable::HostBytes() const {
  int64_t below = 0;
  for (const Page& page : pages_) {
    if (page.place.file != nullptr) continue;
    below += page.below ? page.layers : 0;
  }
  return below * tier_.shape.layout.PageBytes();
}

int64_t PageTable::FirstDamaged() const {
  const auto damaged =
      std::find_if(pages_.begin(), pages_.end(), [](const Page& page) {
        const PageSlot& at = page.place;
        return at.file != nullptr && at.file->IsDamaged(at.slot);
      });
  return damaged - pages_.begin();
}

Transfer PageTable::CopyOf(Direction direction, int64_t page, int layer,
                           DevicePtr<std::byte> device) const {
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
