#ifndef TIERCEL_OFFLOAD_TIER_TIER_SHAPE_H_
#define TIERCEL_OFFLOAD_TIER_TIER_SHAPE_H_

#include <algorithm>
#include <cstdint>

#include "kernels/kv/kv_layout.h"
#include "kernels/machine/device_memory.h"

namespace tiercel {

// How the KV of a session is divided between the tiers, as a TierPlan says.
struct TierShape {
  KvLayout layout = {};
  int layers = 0;
  int64_t context_pages = 0;   // pages of the longest sequence
  int64_t resident_pages = 0;  // of them, the first, that stay on the device
  int64_t newest_pages = 0;    // and the last before the one that is written
  int64_t staged_pages = 0;    // pages that one layer buffer holds
  int64_t disk_pages = 0;      // pages that are below on disk, not in the host
                               // tier

  // Pages that are being written are on the device too: the rows of a step lie
  // in two, and before a prompt's last page a step may have left two.
  static constexpr int64_t kOpenPages = 3;

  // Where a page is below follows from its number alone. First those go to disk
  // that no sweep reads, as they are resident; then the last.
  bool IsOnDisk(int64_t page) const {
    return page < std::min(disk_pages, resident_pages) ||
           page >= context_pages -
                       std::max<int64_t>(0, disk_pages - resident_pages);
  }
  // How many of the pages [begin, end) are on disk.
  int64_t OnDisk(int64_t begin, int64_t end) const {
    int64_t count = 0;
    for (int64_t page = begin; page < end; ++page) count += IsOnDisk(page);
    return count;
  }

  int64_t StagingBytes() const {
    return 2 * AlignedBytes(staged_pages * layout.PageBytes());
  }
  int64_t Slots() const { return resident_pages + newest_pages + kOpenPages; }
  int64_t SlotBytes() const {
    return AlignedBytes(Slots() * layers * layout.PageBytes());
  }
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_TIER_SHAPE_H_
