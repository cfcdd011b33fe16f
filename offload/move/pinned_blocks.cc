#include "offload/move/pinned_blocks.h"

#include <sys/mman.h>

#include <algorithm>

#include "kernels/system/resource_limits.h"

namespace tiercel {
namespace {

// More threads do not clear memory faster.
constexpr int kMostThreads = 16;

}  // namespace

PinnedBlocks::~PinnedBlocks() {
  for (const auto& [region, known] : regions_) Unpin(known);
}

bool PinnedBlocks::IsPinned(const HostRegion& region, std::byte* base,
                            int64_t block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Region& known = regions_[&region];
  if (known.blocks.empty()) {
    const auto bytes = static_cast<int64_t>(region.bytes());
    known.base = base;
    known.blocks.resize(static_cast<size_t>((bytes - 1) / kBlockBytes + 1));
  }
  State& state = known.blocks[static_cast<size_t>(block)];
  if (state == State::kUnknown) Pin(region, known, block);
  return state == State::kPinned;
}

// Pins the block, and unknown blocks that follow it: as many as the region has
// pinned already, so that at most half of all is pinned in vain.
void PinnedBlocks::Pin(const HostRegion& region, Region& known, int64_t block) {
  int64_t count = 1;
  const int64_t most = known.pinned < kLargeRegion
                           ? 1
                           : std::min({known.pinned, kMostAhead,
                                       std::ssize(known.blocks) - block});
  const auto first = known.blocks.begin() + block;
  while (count < most && first[count] == State::kUnknown) ++count;
  const auto pin = [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t offset = (block + i) * kBlockBytes;
      const auto bytes = static_cast<size_t>(
          std::min(kBlockBytes, static_cast<int64_t>(region.bytes()) - offset));
      std::byte* const address = known.base + offset;
      // Here several threads clear memory at once. If that is refused, the
      // memory is cleared as the driver pins it, by one thread at a time.
      if (count > 1) (void)madvise(address, bytes, MADV_POPULATE_WRITE);
      first[i] =
          placement_->Pin(address, bytes) ? State::kPinned : State::kRefused;
    }
  };
  if (count == 1) {
    pin(0, 1, 0);
  } else {
    if (pool_ == nullptr) {
      pool_ =
          std::make_unique<ThreadPool>(std::min(kMostThreads, AllowedCpus()));
    }
    pool_->ParallelFor(count, /*grain=*/1, pin);
  }
  known.pinned += std::count(first, first + count, State::kPinned);
}

void PinnedBlocks::Unpin(const Region& region) {
  for (size_t i = 0; i < region.blocks.size(); ++i) {
    if (region.blocks[i] != State::kPinned) continue;
    placement_->Unpin(region.base + static_cast<int64_t>(i) * kBlockBytes);
  }
}

void PinnedBlocks::Forget(const HostRegion& region) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = regions_.find(&region);
  if (known == regions_.end()) return;
  Unpin(known->second);
  regions_.erase(known);
}

}  // namespace tiercel
