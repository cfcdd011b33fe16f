#ifndef TIERCEL_OFFLOAD_MOVE_KV_TIER_H_
#define TIERCEL_OFFLOAD_MOVE_KV_TIER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "offload/move/copy_engine.h"
#include "offload/page/device_slots.h"
#include "offload/page/page_pool.h"

namespace tiercel {

// How the KV of a session is divided between the tiers; see offload/plan.
struct TierShape {
  KvLayout layout = {};
  int layers = 0;
  int64_t context_pages = 0;   // pages of the longest sequence
  int64_t resident_pages = 0;  // of them, those that stay on the device
  int64_t staged_pages = 0;    // pages that one layer buffer holds

  // Pages that are being written are on the device too: the rows of a step lie
  // in two, and before a prompt's last page a step may have left two.
  static constexpr int64_t kOpenPages = 3;

  int64_t StagingBytes() const {
    return 2 * AlignedBytes(staged_pages * layout.PageBytes());
  }
  int64_t SlotBytes() const {
    return AlignedBytes((resident_pages + kOpenPages) * layers *
                        layout.PageBytes());
  }
};

// What a sequence and its forks share: the pages of both tiers, two buffers
// that layers are staged in by turns, and the engine that copies.
struct KvTier {
  // Errors: out_of_memory; no_thread.
  static absl::StatusOr<std::shared_ptr<KvTier>> Create(
      const TierShape& shape, DeviceMemory& memory, std::unique_ptr<Link> link);

  // One layer's pages that are not on the device otherwise.
  struct Staging {
    DeviceArray<std::byte> pages;   // [staged_pages][page]
    CopyEngine::Ticket filled = 0;  // its fetch
    CopyEngine::Ticket sent = 0;    // what last went down from it
  };

  TierShape shape;
  // In the order of destruction reversed: the engine stops before what it
  // copies from and to goes.
  PagePool pool;
  DeviceSlots slots;
  std::array<Staging, 2> staging;
  std::unique_ptr<CopyEngine> engine;

  // Sequences take turns; the layers fetched ahead are those of `owner`.
  const void* owner = nullptr;
  // Layer k of the current step is staged in buffer (turn + k) % 2.
  int64_t turn = 0;

  Staging& StagingOf(int64_t layer) {
    return staging[static_cast<size_t>((turn + layer) % 2)];
  }
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_KV_TIER_H_
