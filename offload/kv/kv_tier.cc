#include "offload/kv/kv_tier.h"

#include <utility>

namespace tiercel {

absl::StatusOr<std::shared_ptr<KvTier>> KvTier::Create(
    const TierShape& shape, DeviceMemory& memory, std::unique_ptr<Link> link) {
  absl::StatusOr<DeviceSlots> slots =
      DeviceSlots::Create(memory, shape.layout, shape.layers, shape.Slots());
  if (!slots.ok()) return slots.status();
  std::array<Buffer, 2> buffers;
  for (Buffer& buffer : buffers) {
    absl::StatusOr<DeviceArray<std::byte>> pages =
        DeviceArray<std::byte>::Create(
            memory, shape.staged_pages * shape.layout.PageBytes(),
            "a layer buffer");
    if (!pages.ok()) return pages.status();
    buffer.pages = *std::move(pages);
  }
  absl::StatusOr<std::unique_ptr<CopyEngine>> engine =
      CopyEngine::Create(std::move(link));
  if (!engine.ok()) return engine.status();
  return std::make_shared<KvTier>(
      KvTier{shape,
             PagePool(shape.layout, shape.layers, shape.context_pages + 2,
                      PagePool::Access::kUnmapped),
             *std::move(slots), std::move(buffers), *std::move(engine)});
}

}  // namespace tiercel
