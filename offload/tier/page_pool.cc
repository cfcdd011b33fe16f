#include "offload/tier/page_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

PagePool::PagePool(const KvLayout& layout, int layers,
                   int64_t slots_per_segment)
    : layout_(layout),
      layers_(layers),
      slots_per_segment_(std::max<int64_t>(1, slots_per_segment)) {}

absl::StatusOr<PagePool> PagePool::OnDevice(const KvLayout& layout, int layers,
                                            int64_t slots,
                                            DeviceMemory& memory) {
  ASSIGN_OR_RETURN(
      DeviceArray<std::byte> pages,
      DeviceArray<std::byte>::Create(
          memory, layers * slots * layout.PageBytes(), "KV pages"));
  PagePool pool(layout, layers, slots);
  pool.device_ = std::move(pages);
  pool.memory_ = &memory;
  pool.slots_.Grow(slots);
  return pool;
}

void PagePool::Promise(MemoryPromise promise, int64_t slots) {
  planned_bytes_ = promise.bytes() / std::max<int64_t>(1, slots);
  promise_ = std::move(promise);
  promised_slots_ = slots;
}

void PagePool::NoteWritten() {
  promise_.NoteWritten(slots_.most() * planned_bytes_);
}

void PagePool::Trim() {
  if (on_device()) return;
  slots_.Trim([this](int64_t first, int64_t count) {
    while (count > 0) {
      const int64_t in_segment =
          std::min(count, slots_per_segment_ - first % slots_per_segment_);
      for (int layer = 0; layer < layers_; ++layer) {
        const Location at = LocationOf(layer, first);
        at.region->Discard(at.offset, in_segment * layout_.PageBytes());
      }
      first += in_segment;
      count -= in_segment;
    }
  });
  NoteWritten();
}

absl::StatusOr<int64_t> PagePool::Take() {
  if (!on_device() && slots_in_use() >= promised_slots_) {
    RETURN_IF_ERROR(promise_.Grow(layers_ * layout_.PageBytes(),
                                  "KV of forks and of texts being saved"));
    ++promised_slots_;
  }
  const int64_t slot = slots_.Take();
  if (slot >= 0) return slot;
  if (on_device()) {
    return MemoryError("out_of_memory",
                       absl::StrCat("KV pages on the device: all ",
                                    slots_per_segment_, " are in use"));
  }
  std::vector<HostRegion> segment;
  for (int layer = 0; layer < layers_; ++layer) {
    const auto bytes =
        static_cast<size_t>(slots_per_segment_ * layout_.PageBytes());
    ASSIGN_OR_RETURN(HostRegion region, HostRegion::Reserve(bytes));
    segment.push_back(std::move(region));
  }
  segments_.reserve(segments_.size() + 1);
  slots_.Grow(slots_per_segment_);
  segments_.push_back(std::move(segment));
  return slots_.Take();
}

DevicePtr<std::byte> PagePool::Page(int layer, int64_t slot) {
  if (on_device()) {
    return device_.data() +
           (layer * slots_per_segment_ + slot) * layout_.PageBytes();
  }
  return InPlace(HostPage(layer, slot));
}

std::byte* PagePool::HostPage(int layer, int64_t slot) const {
  const Location location = LocationOf(layer, slot);
  return location.region->data() + location.offset;
}

absl::Status PagePool::CopyPage(int layer, int64_t from, int64_t to) {
  const auto bytes = static_cast<size_t>(layout_.PageBytes());
  if (on_device()) {
    return memory_->Copy(Page(layer, to), Page(layer, from), bytes);
  }
  std::memcpy(HostPage(layer, to), HostPage(layer, from), bytes);
  return absl::OkStatus();
}

PagePool::Location PagePool::LocationOf(int layer, int64_t slot) const {
  const auto segment = static_cast<size_t>(slot / slots_per_segment_);
  return {&segments_[segment][static_cast<size_t>(layer)],
          slot % slots_per_segment_ * layout_.PageBytes()};
}

}  // namespace tiercel
