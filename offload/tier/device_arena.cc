#include "offload/tier/device_arena.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/error.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<DeviceArena>> DeviceArena::Create(
    int64_t budget) {
  absl::StatusOr<HostRegion> region =
      HostRegion::Reserve(static_cast<size_t>(budget));
  if (!region.ok()) return Annotate(region.status(), "device arena");
  return std::unique_ptr<DeviceArena>(
      new DeviceArena(budget, *std::move(region)));
}

DeviceArena::DeviceArena(int64_t budget, HostRegion region)
    : budget_(budget), region_(std::move(region)), holes_({{0, budget}}) {}

// The lowest hole that is large enough: blocks live about as long as their
// neighbours (weights, then a session's buffers), so holes stay few and large.
absl::StatusOr<std::byte*> DeviceArena::Allocate(size_t bytes,
                                                 std::string_view what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes <= static_cast<size_t>(budget_)) {
    const int64_t size = AlignedBytes(static_cast<int64_t>(bytes));
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      const auto [offset, hole_bytes] = *hole;
      if (hole_bytes < size) continue;
      holes_.erase(hole);
      if (hole_bytes > size) holes_[offset + size] = hole_bytes - size;
      Count(size);
      return region_.data() + offset;
    }
  }
  return MemoryError(
      "out_of_memory",
      absl::StrCat("device memory for ", std::string(what), ": need ", bytes,
                   " bytes, ", free(), " of ", budget_, " are free"));
}

void DeviceArena::Free(std::byte* data, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  int64_t offset = data - region_.data();
  int64_t size = AlignedBytes(static_cast<int64_t>(bytes));
  Count(-size);
  auto next = holes_.lower_bound(offset);
  if (next != holes_.end() && next->first == offset + size) {
    size += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  holes_[offset] = size;
}

}  // namespace tiercel
