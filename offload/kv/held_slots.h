#ifndef TIERCEL_OFFLOAD_KV_HELD_SLOTS_H_
#define TIERCEL_OFFLOAD_KV_HELD_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "offload/disk/page_file.h"
#include "offload/tier/page_pool.h"

namespace tiercel {

// Returns the slots of a pool as PageSlots, which could be on disk too.
std::vector<PageSlot> SlotsOf(const std::vector<int64_t>& slots);

// Shares whole pages below the device, in the host tier or on disk, as a fork
// would. Made and destroyed on the thread of their sequences; Read may be
// called from any thread.
class HeldSlots {
 public:
  // Holds the layers [first_layer, first_layer + layers) of the slots.
  HeldSlots(std::shared_ptr<PagePool> pool, std::vector<PageSlot> slots,
            int first_layer, int layers);
  ~HeldSlots();
  HeldSlots(const HeldSlots&) = delete;
  HeldSlots& operator=(const HeldSlots&) = delete;

  int64_t size() const { return static_cast<int64_t>(slots_.size()); }
  // Copies one layer of a page. Errors: out_of_memory; those of PageFile::Read.
  absl::Status Read(int layer, int64_t index, std::byte* to) const;

 private:
  const std::shared_ptr<PagePool> pool_;
  const std::vector<PageSlot> slots_;
  const int first_layer_;
  // [layer][slot]: copies of the pool's locations, as the pool's own lists may
  // change while Read runs.
  std::vector<std::vector<PagePool::Location>> places_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_HELD_SLOTS_H_
