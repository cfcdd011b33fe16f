#include "kernels/device/sim/bounded_memory.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/system/faults.h"
#include "lib/status/error.h"
#include "lib/status/status_macros.h"

namespace tiercel {

absl::StatusOr<std::unique_ptr<BoundedMemory>> BoundedMemory::Create(
    int64_t budget, DeviceMemory* device) {
  if (device != nullptr) {
    ASSIGN_OR_RETURN(
        const DeviceArray<std::byte> all,
        DeviceArray<std::byte>::Create(*device, budget, "simulated device"));
  }
  return std::unique_ptr<BoundedMemory>(new BoundedMemory(budget, device));
}

absl::StatusOr<DevicePtr<std::byte>> BoundedMemory::Allocate(
    size_t bytes, std::string_view what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool refused = FaultAt({.of = Callee::kMemory,
                                .call = "allocate",
                                .bytes = static_cast<int64_t>(bytes)}) != 0;
  if (!refused && bytes <= static_cast<size_t>(budget_)) {
    const auto size = static_cast<int64_t>(std::max<size_t>(1, bytes));
    if (AlignedBytes(size) <= free()) {
      absl::StatusOr<DevicePtr<std::byte>> data =
          of_.Allocate(static_cast<size_t>(size), what);
      if (data.ok()) Count(AlignedBytes(size));
      return data;
    }
  }
  return MemoryError(
      "out_of_memory",
      absl::StrCat("device memory for ", std::string(what), ": need ", bytes,
                   " bytes, ", free(), " of ", budget_, " are free"));
}

void BoundedMemory::Free(DevicePtr<std::byte> data, size_t bytes) {
  const size_t size = std::max<size_t>(1, bytes);
  of_.Free(data, size);
  Count(-AlignedBytes(static_cast<int64_t>(size)));
}

}  // namespace tiercel
