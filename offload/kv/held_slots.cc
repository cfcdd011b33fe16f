#include "offload/kv/held_slots.h"

#include <utility>

namespace tiercel {

std::vector<PageSlot> SlotsOf(const std::vector<int64_t>& slots) {
  std::vector<PageSlot> all;
  all.reserve(slots.size());
  for (const int64_t slot : slots) all.push_back({.slot = slot});
  return all;
}

HeldSlots::HeldSlots(std::shared_ptr<PagePool> pool,
                     std::vector<PageSlot> slots, int first_layer, int layers)
    : pool_(std::move(pool)),
      slots_(std::move(slots)),
      first_layer_(first_layer),
      places_(static_cast<size_t>(layers)) {
  for (int layer = 0; layer < layers; ++layer) {
    auto& places = places_[static_cast<size_t>(layer)];
    places.reserve(slots_.size());
    for (const PageSlot& at : slots_) {
      places.push_back(at.file != nullptr
                           ? PagePool::Location{nullptr, 0}
                           : pool_->LocationOf(first_layer + layer, at.slot));
    }
  }
  // The slots are counted last, when nothing can fail any more.
  for (const PageSlot& at : slots_) at.AddReference(*pool_);
}

HeldSlots::~HeldSlots() {
  for (const PageSlot& at : slots_) at.Release(*pool_);
}

absl::Status HeldSlots::Read(int layer, int64_t index, std::byte* to) const {
  const auto i = static_cast<size_t>(index);
  const PageSlot& at = slots_[i];
  if (at.file != nullptr) return at.file->Read(layer, at.slot, to);
  const PagePool::Location& place =
      places_[static_cast<size_t>(layer - first_layer_)][i];
  place.region->Read(place.offset, to,
                     static_cast<size_t>(pool_->layout().PageBytes()));
  return absl::OkStatus();
}

}  // namespace tiercel
