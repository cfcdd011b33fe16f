#ifndef TIERCEL_OFFLOAD_MOVE_PINNED_BLOCKS_H_
#define TIERCEL_OFFLOAD_MOVE_PINNED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/system/thread_pool.h"
#include "offload/tier/host_region.h"
#include "offload/tier/placement.h"

namespace tiercel {

// Blocks of the host tier that are pinned for a GPU, each as it is first
// copied, so that a context costs only the memory that it uses. To pin a block
// the system has to find and clear its memory, which takes a thread longer than
// the link takes to fill it. So in a region that is already large, the next
// blocks are pinned ahead, by several threads. Thread-safe.
class PinnedBlocks {
 public:
  static constexpr int64_t kBlockBytes = int64_t{16} << 20;
  // A region with fewer than kLargeRegion pinned blocks has none pinned ahead,
  // so that small contexts take only what they need. At most kMostAhead blocks
  // are pinned at a time.
  static constexpr int64_t kLargeRegion = 8;
  static constexpr int64_t kMostAhead = 16;

  explicit PinnedBlocks(std::shared_ptr<Placement> placement)
      : placement_(std::move(placement)) {}
  ~PinnedBlocks();
  PinnedBlocks(const PinnedBlocks&) = delete;
  PinnedBlocks& operator=(const PinnedBlocks&) = delete;

  // Returns true if block `block` of the region, which lies at `base`, is
  // pinned. The first call for a block pins it, unless the system refuses.
  bool IsPinned(const HostRegion& region, std::byte* base, int64_t block);
  // Unpins all blocks of a region, none of whose copies is under way.
  void Forget(const HostRegion& region);

 private:
  enum class State { kUnknown, kPinned, kRefused };
  struct Region {
    std::byte* base = nullptr;
    std::vector<State> blocks;
    int64_t pinned = 0;
  };

  void Pin(const HostRegion& region, Region& known, int64_t block);
  void Unpin(const Region& region);

  const std::shared_ptr<Placement> placement_;
  std::mutex mutex_;                  // guards the members below
  std::unique_ptr<ThreadPool> pool_;  // null: not needed yet
  std::map<const HostRegion*, Region> regions_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_PINNED_BLOCKS_H_
