#include "offload/kv/held_layer.h"

#include <algorithm>
#include <utility>

namespace tiercel {

HeldLayer::HeldLayer(std::shared_ptr<PagePool> pool, int layer,
                     std::vector<PageSlot> slots, std::vector<std::byte> last,
                     std::shared_ptr<const HostRegion> state,
                     int64_t state_bytes)
    : layer_(layer),
      whole_(std::move(pool), std::move(slots), layer, /*layers=*/1),
      last_(std::move(last)),
      state_(std::move(state)),
      state_bytes_(state_bytes) {}

absl::Status HeldLayer::ReadPage(int64_t page, std::byte* to) const {
  if (page < whole_.size()) return whole_.Read(layer_, page, to);
  std::copy(last_.begin(), last_.end(), to);
  return absl::OkStatus();
}

}  // namespace tiercel
