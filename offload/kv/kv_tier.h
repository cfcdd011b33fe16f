#ifndef TIERCEL_OFFLOAD_KV_KV_TIER_H_
#define TIERCEL_OFFLOAD_KV_KV_TIER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "offload/disk/page_file.h"
#include "offload/move/copy_engine.h"
#include "offload/move/disk_link.h"
#include "offload/tier/device_slots.h"
#include "offload/tier/memory_promise.h"
#include "offload/tier/page_pool.h"
#include "offload/tier/tier_shape.h"

namespace tiercel {

class Residency;

// What a sequence and its forks share: the pages of all tiers, two buffers
// that layers are staged in by turns, and the engine that copies.
struct KvTier {
  // `spill`: where pages go that the shape has on disk; `promise`: the memory
  // of the others below. Errors: out_of_memory; no_thread.
  static absl::StatusOr<std::shared_ptr<KvTier>> Create(
      const TierShape& shape, DeviceMemory& memory, std::unique_ptr<Link> link,
      std::shared_ptr<PageFile> spill = nullptr, MemoryPromise promise = {});

  // The slot of a sequence's page below, with one reference. Errors:
  // out_of_memory.
  absl::StatusOr<PageSlot> TakeBelow(int64_t page);

  // One layer's pages that are not on the device otherwise.
  struct Buffer {
    DeviceArray<std::byte> pages;   // [staged_pages][page]
    CopyEngine::Ticket filled = 0;  // its fetch
    CopyEngine::Ticket sent = 0;    // what last went down from it
  };

  TierShape shape;
  // Members are destroyed from the last to the first: the engine stops before
  // what it copies from and to goes.
  PagePool pool;
  std::shared_ptr<PageFile> spill;  // null: nothing is on disk
  DeviceSlots slots;
  std::array<Buffer, 2> buffers;
  std::unique_ptr<CopyEngine> engine;
  const DiskLink* disk = nullptr;  // of the engine; null: nothing is on disk

  // Sequences take turns; who stepped last is the last of these, and the layers
  // fetched ahead are those of `owner`.
  std::vector<Residency*> sequences = {};
  const void* owner = nullptr;
  // Layer k of the current step is staged in buffer (turn + k) % 2.
  int64_t turn = 0;

  // Until they are written pages on the device are taken but not there, where
  // that is played: what of them has been, at most.
  MemoryPromise on_device = {};
  int64_t staged_most = 0;
  // What is committed has been written.
  void NoteWritten();

  Buffer& BufferOf(int64_t layer) {
    return buffers[static_cast<size_t>((turn + layer) % 2)];
  }
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_KV_TIER_H_
