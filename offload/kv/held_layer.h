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

// One layer that has ended of a prompt's step: its pages, from the first that
// the step writes, and the hidden states after it. They stay as they were when
// this was made, whatever becomes of the step. Whole pages are shared, as with
// a fork. Made and destroyed on the thread of the pool's sequences; the other
// functions may be called from any thread.
class HeldLayer {
 public:
  // `slots` are those of the whole pages, some of them on disk. `last` is the
  // page after them, with 0 in the cells after its last position, or empty.
  // The first `state_bytes` of `state` are the hidden states.
  HeldLayer(std::shared_ptr<PagePool> pool, int layer,
            std::vector<PageSlot> slots, std::vector<std::byte> last,
            std::shared_ptr<const HostRegion> state, int64_t state_bytes);

  // Sets the hidden states of a layer that was made without.
  void SetState(std::shared_ptr<const HostRegion> state, int64_t state_bytes) {
    state_ = std::move(state);
    state_bytes_ = state_bytes;
  }

  int layer() const { return layer_; }
  int64_t pages() const { return whole_.size() + (last_.empty() ? 0 : 1); }
  int64_t state_bytes() const { return state_bytes_; }
  // Copies a page, counted from the step's first. Errors: those of HeldSlots.
  absl::Status ReadPage(int64_t page, std::byte* to) const;
  // Copies bytes of the hidden states.
  void ReadState(int64_t offset, std::byte* to, size_t bytes) const {
    state_->Read(offset, to, bytes);
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
