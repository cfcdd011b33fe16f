#ifndef TIERCEL_OFFLOAD_PAGE_DEVICE_SLOTS_H_
#define TIERCEL_OFFLOAD_PAGE_DEVICE_SLOTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/base/device_memory.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

// KV pages that live on the device. A slot is one page in every layer; all are
// taken when the session is made. Slots are counted references, as those of
// PagePool.
//
//   [layer][slot][layout.PageBytes()]
class DeviceSlots {
 public:
  // Errors: out_of_memory.
  static absl::StatusOr<DeviceSlots> Create(DeviceMemory& memory,
                                            const KvLayout& layout, int layers,
                                            int64_t count);

  // A slot with one reference and undefined contents; -1: all are in use.
  int64_t Take();
  void AddReference(int64_t slot) { ++references_[Index(slot)]; }
  void Release(int64_t slot);
  bool IsShared(int64_t slot) const { return references_[Index(slot)] > 1; }

  std::byte* Page(int layer, int64_t slot);
  int64_t count() const { return static_cast<int64_t>(references_.size()); }
  int64_t in_use() const {
    return count() - static_cast<int64_t>(free_.size());
  }

 private:
  DeviceSlots(const KvLayout& layout, int64_t count,
              DeviceArray<std::byte> memory);
  static size_t Index(int64_t slot) { return static_cast<size_t>(slot); }

  int64_t page_bytes_;
  DeviceArray<std::byte> memory_;
  std::vector<int> references_;  // [slot]
  std::vector<int64_t> free_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_PAGE_DEVICE_SLOTS_H_
