#ifndef TIERCEL_OFFLOAD_TIER_TIER_SHAPE_H_
#define TIERCEL_OFFLOAD_TIER_TIER_SHAPE_H_

#include <algorithm>
#include <cstdint>

#include "kernels/device/device_memory.h"
#include "kernels/kv/kv_layout.h"

namespace tiercel {

// The seconds by which the pages of a sweep are divided between the link and
// the host.
struct HostShare {
  double link_s = 0;     // for a page of one layer to cross
  double host_s = 0;     // for the host to attend to it; 0: it takes no share
  double compute_s = 0;  // for the rest of a layer, on the device

  // The number of a layer's `pages` that the host attends to, so that it is
  // done when the link is. It begins when the device has the layer's queries,
  // while the link works all the time.
  int64_t Pages(int64_t pages) const {
    if (host_s <= 0) return 0;
    const double link = static_cast<double>(pages) * link_s;
    return std::max<int64_t>(
        0, static_cast<int64_t>((link - compute_s) / (link_s + host_s)));
  }
};

// Forks of a sequence that step at once with it, and the pages that each of
// them has alone.
struct ForkPages {
  int64_t count = 0;
  int64_t pages = 0;
  // The device slots of each for pages that are being written: 1 if it may wait
  // where its rows lie in two pages, else 2.
  int64_t open = 1;

  int64_t All() const { return count * pages; }
};

// The division of a session's KV between the tiers, as a TierPlan decides it.
struct TierShape {
  KvLayout layout = {};
  int layers = 0;
  int64_t context_pages = 0;   // pages of the longest sequence
  int64_t resident_pages = 0;  // the first pages, which stay on the device
  int64_t newest_pages = 0;    // the last full pages, which stay there too
  int64_t staged_pages = 0;    // pages that one layer buffer holds
  int64_t disk_pages = 0;      // pages on disk instead of in the host tier
  HostShare host = {};
  ForkPages forks = {};

  // The number of device slots for pages that are being written: the rows of a
  // step lie in two pages at most, and a prompt writes its last page while two
  // pages that a step has left are still there.
  static constexpr int64_t kOpenPages = 3;

  // Returns true if the page is on disk rather than in the host tier; its
  // number alone decides. Resident pages go to disk first, as no sweep reads
  // them there; then the last pages.
  bool IsOnDisk(int64_t page) const {
    return page < std::min(disk_pages, resident_pages) ||
           page >= context_pages -
                       std::max<int64_t>(0, disk_pages - resident_pages);
  }
  // The number of pages in [begin, end) that are on disk.
  int64_t OnDisk(int64_t begin, int64_t end) const {
    int64_t count = 0;
    for (int64_t page = begin; page < end; ++page) count += IsOnDisk(page);
    return count;
  }

  int64_t StagingBytes() const {
    return 2 * AlignedBytes(staged_pages * layout.PageBytes());
  }
  // Pages below the device, of all sequences.
  int64_t PoolPages() const { return context_pages + forks.All(); }
  // If all pages are resident those of forks are, too.
  int64_t Slots() const {
    const int64_t own = resident_pages == context_pages ? forks.pages : 0;
    return resident_pages + newest_pages + kOpenPages +
           forks.count * (own + newest_pages + forks.open);
  }
  int64_t SlotBytes() const {
    return AlignedBytes(Slots() * layers * layout.PageBytes());
  }
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_TIER_SHAPE_H_
