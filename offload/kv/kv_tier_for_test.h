#ifndef TIERCEL_OFFLOAD_KV_KV_TIER_FOR_TEST_H_
#define TIERCEL_OFFLOAD_KV_KV_TIER_FOR_TEST_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/device/sim/bounded_memory.h"
#include "kernels/kv/kv_layout.h"
#include "offload/kv/kv_tier.h"

namespace tiercel {

// A tier, and a device that has room for it and for nothing else.
struct TierForTest {
  TierForTest(const KvLayout& layout, int layers, int64_t context_pages,
              int64_t resident_pages, std::unique_ptr<Link> link,
              int64_t newest_pages = 0, const ForkPages& forks = {}) {
    TierShape shape;
    shape.layout = layout;
    shape.layers = layers;
    shape.context_pages = context_pages;
    shape.resident_pages = resident_pages;
    shape.newest_pages = newest_pages;
    shape.forks = forks;
    shape.staged_pages = context_pages - resident_pages;
    if (shape.staged_pages > 0) shape.staged_pages += forks.All();
    memory = *BoundedMemory::Create(
        AlignedBytes(shape.StagingBytes() + shape.SlotBytes()));
    tier = *KvTier::Create(shape, *memory, std::move(link));
  }

  std::unique_ptr<BoundedMemory> memory;
  std::shared_ptr<KvTier> tier;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_KV_KV_TIER_FOR_TEST_H_
