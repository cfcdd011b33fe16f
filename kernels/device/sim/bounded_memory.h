#ifndef TIERCEL_KERNELS_DEVICE_SIM_BOUNDED_MEMORY_H_
#define TIERCEL_KERNELS_DEVICE_SIM_BOUNDED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/device/device_memory.h"

namespace tiercel {

// The memory of a simulated device: at most `budget` bytes of another memory. A
// request that exceeds what is free is refused, with the numbers. Blocks lie
// wherever the other memory has room, so freed blocks never fragment it: every
// request that fits the free bytes is granted.
class BoundedMemory final : public DeviceMemory {
 public:
  // Takes its blocks from `device`, which outlives it; null: from the host's
  // memory.
  // Errors: out_of_memory where `device` has less than `budget` bytes now.
  static absl::StatusOr<std::unique_ptr<BoundedMemory>> Create(
      int64_t budget, DeviceMemory* device = nullptr);

  absl::StatusOr<DevicePtr<std::byte>> Allocate(size_t bytes,
                                                std::string_view what) override;
  void Free(DevicePtr<std::byte> data, size_t bytes) override;
  absl::Status Copy(DevicePtr<void> to, DevicePtr<const void> from,
                    size_t bytes) override {
    return of_.Copy(to, from, bytes);
  }

  int64_t free() const { return budget_ - used(); }

 private:
  BoundedMemory(int64_t budget, DeviceMemory* device)
      : budget_(budget), of_(device != nullptr ? *device : host_) {}

  const int64_t budget_;
  HeapMemory host_;
  DeviceMemory& of_;
  std::mutex mutex_;  // held from the check of free() until the bytes are taken
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_SIM_BOUNDED_MEMORY_H_
