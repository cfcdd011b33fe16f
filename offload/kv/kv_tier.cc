#include "offload/kv/kv_tier.h"

#include <utility>

#include "lib/status/status_macros.h"
#include "offload/kv/staging.h"

namespace tiercel {

absl::StatusOr<std::shared_ptr<KvTier>> KvTier::Create(
    const TierShape& shape, DeviceMemory& memory, std::unique_ptr<Link> link,
    std::shared_ptr<PageFile> spill, MemoryPromise promise) {
  ASSIGN_OR_RETURN(
      DeviceSlots slots,
      DeviceSlots::Create(memory, shape.layout, shape.layers, shape.Slots()));
  std::array<Buffer, 2> buffers;
  for (Buffer& buffer : buffers) {
    ASSIGN_OR_RETURN(buffer.pages,
                     DeviceArray<std::byte>::Create(
                         memory, shape.staged_pages * shape.layout.PageBytes(),
                         "a layer buffer"));
  }
  const DiskLink* disk = nullptr;
  if (spill != nullptr) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<DiskLink> through,
        DiskLink::Create(std::move(link), spill->disk(),
                         shape.layout.PageBytes(), shape.context_pages));
    disk = through.get();
    link = std::move(through);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<CopyEngine> engine,
                   CopyEngine::Create(std::move(link)));
  std::shared_ptr<KvTier> tier(new KvTier{
      shape, PagePool(shape.layout, shape.layers, shape.context_pages + 2),
      std::move(spill), std::move(slots), std::move(buffers), std::move(engine),
      disk, /*staging=*/nullptr});
  tier->staging = std::make_unique<Staging>(*tier);
  tier->pool.Promise(std::move(promise), shape.PoolPages() - shape.disk_pages);
  return tier;
}

KvTier::~KvTier() = default;

void KvTier::NoteWritten() {
  pool.NoteWritten();
  const int64_t page_bytes = shape.layout.PageBytes();
  on_device.NoteWritten((slots.most() * shape.layers + 2 * staged_most) *
                        page_bytes);
}

absl::StatusOr<PageSlot> KvTier::TakeBelow(int64_t page) {
  if (spill != nullptr && shape.IsOnDisk(page)) {
    return PageSlot{spill->Take(), spill};
  }
  ASSIGN_OR_RETURN(const int64_t slot, pool.Take());
  return PageSlot{.slot = slot};
}

}  // namespace tiercel
