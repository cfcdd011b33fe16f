#ifndef TIERCEL_OFFLOAD_KV_KV_TIER_H_
#define TIERCEL_OFFLOAD_KV_KV_TIER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "offload/disk/page_file.h"
#include "offload/kv/host_attention.h"
#include "offload/move/copy_engine.h"
#include "offload/move/disk_link.h"
#include "offload/tier/device_slots.h"
#include "offload/tier/memory_promise.h"
#include "offload/tier/page_pool.h"
#include "offload/tier/tier_shape.h"

namespace tiercel {

class Residency;
class Staging;

// The parts that a sequence and its forks share: the pages of all tiers, two
// buffers in which layers are staged by turns, and the engine that copies.
struct KvTier {
  // `spill` is the file of the pages that the shape has on disk; `promise`
  // covers the memory of the other pages below. Errors: out_of_memory;
  // no_thread.
  static absl::StatusOr<std::shared_ptr<KvTier>> Create(
      const TierShape& shape, DeviceMemory& memory, std::unique_ptr<Link> link,
      std::shared_ptr<PageFile> spill = nullptr, MemoryPromise promise = {});

  ~KvTier();

  // Takes a slot below for a sequence's page, with one reference. Errors:
  // out_of_memory.
  absl::StatusOr<PageSlot> TakeBelow(int64_t page);

  // A layer buffer: the pages of one layer that have no device slot.
  struct Buffer {
    DeviceArray<std::byte> pages;   // [staged_pages][page]
    CopyEngine::Ticket filled = 0;  // the last fetch into it
    CopyEngine::Ticket sent = 0;    // the last copy down from it
  };

  TierShape shape;
  // Members are destroyed from the last to the first: the engine stops before
  // the memory that it copies from and to is freed.
  PagePool pool;
  std::shared_ptr<PageFile> spill;  // null: nothing is on disk
  DeviceSlots slots;
  std::array<Buffer, 2> buffers;
  std::unique_ptr<CopyEngine> engine;
  const DiskLink* disk = nullptr;  // the engine's; null: nothing is on disk
  std::unique_ptr<Staging> staging;
  std::unique_ptr<HostAttention> host = nullptr;  // null: it takes no share

  // The sequence that stepped last is the last of these.
  std::vector<Residency*> sequences = {};
  // Layer k of the current step is staged in buffer (turn + k) % 2.
  int64_t turn = 0;
  int64_t last_contents = 0;  // PageTable::Page::contents

  // The promise of a simulated device's pages, whose memory the system gives
  // only as they are written; and the most pages that a buffer has held.
  MemoryPromise on_device = {};
  int64_t staged_most = 0;
  // Notes the pages of both tiers that have been written so far.
  void NoteWritten();

  Buffer& BufferOf(int64_t layer) {
    return buffers[static_cast<size_t>((turn + layer) % 2)];
  }
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_KV_TIER_H_
