#include "offload/tier/device_arena.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<DeviceArena>> DeviceArena::Create(
    int64_t budget, std::shared_ptr<const Faults> faults,
    DeviceMemory* device) {
  std::unique_ptr<DeviceArena> arena(
      new DeviceArena(budget, std::move(faults)));
  if (device != nullptr) {
    absl::StatusOr<DeviceArray<std::byte>> all =
        DeviceArray<std::byte>::Create(*device, budget, "device arena");
    if (!all.ok()) return all.status();
    arena->device_ = device;
    arena->on_device_ = *std::move(all);
    arena->start_ = arena->on_device_.data();
    return arena;
  }
  absl::StatusOr<HostRegion> region =
      HostRegion::Reserve(static_cast<size_t>(budget));
  if (!region.ok()) return Annotate(region.status(), "device arena");
  arena->host_ = *std::move(region);
  arena->start_ = arena->host_.data();
  return arena;
}

absl::Status DeviceArena::Copy(std::byte* to, const std::byte* from,
                               size_t bytes) {
  return device_ != nullptr ? device_->Copy(to, from, bytes)
                            : DeviceMemory::Copy(to, from, bytes);
}

// The lowest block that is free and large enough: they live about as long as
// their neighbours (weights, then a session's buffers), so those that are free
// stay few and large.
absl::StatusOr<std::byte*> DeviceArena::Allocate(size_t bytes,
                                                 std::string_view what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool refused = faults_ != nullptr &&
                       Fails(faults_->allocation, static_cast<int64_t>(bytes));
  if (bytes <= static_cast<size_t>(budget_) && !refused) {
    const int64_t size =
        AlignedBytes(std::max<int64_t>(1, static_cast<int64_t>(bytes)));
    for (auto& [offset, block] : blocks_) {
      if (!block.free || block.bytes < size) continue;
      if (block.bytes > size) {  // first, as only this may throw
        blocks_[offset + size] = {block.bytes - size, /*free=*/true};
      }
      block = {size, /*free=*/false};
      Count(size);
      return start_ + offset;
    }
  }
  return MemoryError(
      "out_of_memory",
      absl::StrCat("device memory for ", std::string(what), ": need ", bytes,
                   " bytes, ", free(), " of ", budget_, " are free"));
}

// Takes no memory: what is given back because nothing is left must not fail.
void DeviceArena::Free(std::byte* data, size_t /*bytes*/) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto block = blocks_.find(data - start_);
  Count(-block->second.bytes);
  block->second.free = true;
  const auto next = std::next(block);
  if (next != blocks_.end() && next->second.free) {
    block->second.bytes += next->second.bytes;
    blocks_.erase(next);
  }
  if (block == blocks_.begin()) return;
  const auto before = std::prev(block);
  if (!before->second.free) return;
  before->second.bytes += block->second.bytes;
  blocks_.erase(block);
}

}  // namespace tiercel
