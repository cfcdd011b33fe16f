#include "offload/kv/held_layer.h"

#include <algorithm>
#include <utility>

namespace tiercel {

HeldLayer::HeldLayer(std::shared_ptr<PagePool> pool, int layer,
                     std::vector<int64_t> slots, std::vector<std::byte> last,
                     std::shared_ptr<const HostRegion> state,
                     int64_t state_bytes)
    : pool_(std::move(pool)),
      layer_(layer),
      slots_(std::move(slots)),
      last_(std::move(last)),
      state_(std::move(state)),
      state_bytes_(state_bytes) {
  places_.reserve(slots_.size());
  for (const int64_t slot : slots_) {
    places_.push_back(pool_->LocationOf(layer_, slot));
  }
  // Last, when nothing can fail any more.
  for (const int64_t slot : slots_) pool_->AddReference(slot);
}

HeldLayer::~HeldLayer() {
  for (const int64_t slot : slots_) pool_->Release(slot);
}

absl::Status HeldLayer::ReadPage(int64_t page, std::byte* to) const {
  const auto index = static_cast<size_t>(page);
  if (index == slots_.size()) {
    std::copy(last_.begin(), last_.end(), to);
    return absl::OkStatus();
  }
  const PagePool::Location& place = places_[index];
  return place.region->Read(place.offset, to,
                            static_cast<size_t>(pool_->layout().PageBytes()));
}

}  // namespace tiercel
