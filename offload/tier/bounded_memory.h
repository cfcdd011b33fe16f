#ifndef TIERCEL_OFFLOAD_TIER_BOUNDED_MEMORY_H_
#define TIERCEL_OFFLOAD_TIER_BOUNDED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/machine/device_memory.h"
#include "offload/tier/faults.h"

namespace tiercel {

// The memory of a device that is played: of another's, as much as a budget
// says. What does not fit is refused with the numbers, and all that fits is
// given: each block lies where the other memory has room for it, so those that
// were given back leave no holes.
class BoundedMemory final : public DeviceMemory {
 public:
  // Takes its blocks from `device`, which outlives it; null: from the host's
  // memory.
  // Errors: out_of_memory where `device` has less than `budget` bytes now.
  static absl::StatusOr<std::unique_ptr<BoundedMemory>> Create(
      int64_t budget, std::shared_ptr<const Faults> faults = nullptr,
      DeviceMemory* device = nullptr);

  absl::StatusOr<std::byte*> Allocate(size_t bytes,
                                      std::string_view what) override;
  void Free(std::byte* data, size_t bytes) override;
  absl::Status Copy(std::byte* to, const std::byte* from,
                    size_t bytes) override {
    return of_.Copy(to, from, bytes);
  }

  int64_t free() const { return budget_ - used(); }

 private:
  BoundedMemory(int64_t budget, std::shared_ptr<const Faults> faults,
                DeviceMemory* device)
      : budget_(budget),
        faults_(std::move(faults)),
        of_(device != nullptr ? *device : host_) {}

  const int64_t budget_;
  const std::shared_ptr<const Faults> faults_;
  HeapMemory host_;
  DeviceMemory& of_;
  std::mutex mutex_;  // between what is free and who takes it
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_BOUNDED_MEMORY_H_
