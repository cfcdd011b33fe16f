#ifndef TIERCEL_KERNELS_DEVICE_CPU_CPU_DEVICE_H_
#define TIERCEL_KERNELS_DEVICE_CPU_CPU_DEVICE_H_

#include <memory>
#include <optional>

#include "kernels/device/device.h"
#include "lib/status/error.h"

namespace tiercel {

// The CPU, which computes in the machine's memory. With limits it is a
// simulated device whose ops are done when they return.
class CpuDevice final : public Device {
 public:
  CpuDevice(DeviceKind kind, const std::optional<DeviceLimits>& limits)
      : Device(kind, /*apart=*/false, limits) {}

  absl::StatusOr<std::unique_ptr<DeviceQueue>> NewQueue() override {
    return InternalError("internal", "device cpu has no queue");
  }
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CPU_CPU_DEVICE_H_
