#include "offload/tier/device_slots.h"

#include <utility>

namespace tiercel {

absl::StatusOr<DeviceSlots> DeviceSlots::Create(DeviceMemory& memory,
                                                const KvLayout& layout,
                                                int layers, int64_t count) {
  absl::StatusOr<DeviceArray<std::byte>> pages = DeviceArray<std::byte>::Create(
      memory, layers * count * layout.PageBytes(), "resident pages");
  if (!pages.ok()) return pages.status();
  return DeviceSlots(layout, count, *std::move(pages));
}

DeviceSlots::DeviceSlots(const KvLayout& layout, int64_t count,
                         DeviceArray<std::byte> memory)
    : page_bytes_(layout.PageBytes()), memory_(std::move(memory)) {
  slots_.Grow(count);
}

std::byte* DeviceSlots::Page(int layer, int64_t slot) {
  return memory_.data() + (layer * count() + slot) * page_bytes_;
}

}  // namespace tiercel
