#ifndef TIERCEL_OFFLOAD_TIER_DEVICE_SLOTS_H_
#define TIERCEL_OFFLOAD_TIER_DEVICE_SLOTS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"
#include "kernels/kv/kv_layout.h"
#include "offload/tier/slot_counter.h"

namespace tiercel {

// KV pages that live on the device. A slot is one page in every layer; the
// memory of all slots is taken when the session is made. Slots are counted by
// references, as in PagePool.
//
//   [layer][slot][layout.PageBytes()]
class DeviceSlots {
 public:
  // Errors: out_of_memory.
  static absl::StatusOr<DeviceSlots> Create(DeviceMemory& memory,
                                            const KvLayout& layout, int layers,
                                            int64_t count);

  // Returns a slot with one reference and undefined contents, or -1 if all are
  // in use.
  int64_t Take() { return slots_.Take(); }
  void AddReference(int64_t slot) { slots_.AddReference(slot); }
  void Release(int64_t slot) { slots_.Release(slot); }
  bool IsShared(int64_t slot) const { return slots_.IsShared(slot); }

  DevicePtr<std::byte> Page(int layer, int64_t slot);
  // Copies a page to another slot, after all that is queued. Errors:
  // device_failed.
  absl::Status CopyPage(int layer, int64_t from, int64_t to);
  int64_t count() const { return slots_.count(); }
  int64_t free() const { return slots_.count() - slots_.in_use(); }
  // The most slots that were in use at once so far.
  int64_t most() const { return slots_.most(); }

 private:
  DeviceSlots(const KvLayout& layout, int64_t count, DeviceMemory& memory,
              DeviceArray<std::byte> pages);

  int64_t page_bytes_;
  DeviceMemory* memory_;  // holds pages_
  DeviceArray<std::byte> pages_;
  SlotCounter slots_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_DEVICE_SLOTS_H_
