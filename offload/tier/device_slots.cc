#include "offload/tier/device_slots.h"

#include <utility>

#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<DeviceSlots> DeviceSlots::Create(DeviceMemory& memory,
                                                const KvLayout& layout,
                                                int layers, int64_t count) {
  ASSIGN_OR_RETURN(
      DeviceArray<std::byte> pages,
      DeviceArray<std::byte>::Create(
          memory, layers * count * layout.PageBytes(), "resident pages"));
  return DeviceSlots(layout, count, memory, std::move(pages));
}

DeviceSlots::DeviceSlots(const KvLayout& layout, int64_t count,
                         DeviceMemory& memory, DeviceArray<std::byte> pages)
    : page_bytes_(layout.PageBytes()),
      memory_(&memory),
      pages_(std::move(pages)) {
  slots_.Grow(count);
}

DevicePtr<std::byte> DeviceSlots::Page(int layer, int64_t slot) {
  return pages_.data() + (layer * count() + slot) * page_bytes_;
}

absl::Status DeviceSlots::CopyPage(int layer, int64_t from, int64_t to) {
  return memory_->Copy(Page(layer, to), Page(layer, from),
                       static_cast<size_t>(page_bytes_));
}

}  // namespace tiercel
