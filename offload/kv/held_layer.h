#ifndef TIERCEL_OFFLOAD_KV_HELD_LAYER_H_
#define TIERCEL_OFFLOAD_KV_HELD_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "offload/kv/held_slots.h"
#include "offload/tier/host_region.h"
#include "offload/tier/page_pool.h"

namespace tiercel {

// One layer of a prompt's step that has ended: its pages, from the first that
// the step writes on, and the hidden states behind it, as they were then,
// whatever becomes of the step. Whole pages are shared, as with a fork. Made
// and destroyed on the thread of the pool's sequences; the rest from any.
class HeldLayer {
 public:
  // `slots` of the whole pages, some of them on disk; `last`: the page behind
  // them, cells behind its last position 0, or nothing. The first
  // `state_bytes` of `state` are the hidden states.
  HeldLayer(std::shared_ptr<PagePool> pool, int layer,
            std::vector<PageSlot> slots, std::vector<std::byte> last,
            std::shared_ptr<const HostRegion> state, int64_t state_bytes);

  // The hidden states are these: the store had none.
  void SetState(std::shared_ptr<const HostRegion> state, int64_t state_bytes) {
    state_ = std::move(state);
    state_bytes_ = state_bytes;
  }

  int layer() const { return layer_; }
  int64_t pages() const { return whole_.size() + (last_.empty() ? 0 : 1); }
  int64_t state_bytes() const { return state_bytes_; }
  // Copies a page, counted from the step's first. Errors: those of HeldSlots.
  absl::Status ReadPage(int64_t page, std::byte* to) const;
  // Copies bytes of the hidden states. Errors: out_of_memory.
  absl::Status ReadState(int64_t offset, std::byte* to, size_t bytes) const {
    return state_->Read(offset, to, bytes);
  }

 private:
  const int layer_;
  const HeldSlots whole_;
  const std::vector<std::byte> last_;
  std::shared_ptr<const HostRegion> state_;
  int64_t state_bytes_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_HELD_LAYER_H_
