#ifndef TIERCEL_KERNELS_DEVICE_SIM_SIM_DEVICE_H_
#define TIERCEL_KERNELS_DEVICE_SIM_SIM_DEVICE_H_

#include <memory>
#include <optional>

#include "kernels/device/device.h"
#include "kernels/device/sim/sim_queue.h"

namespace tiercel {

// A device that pretends to be a GPU: the CPU's bodies do its work late, in
// memory that the host cannot touch (SimQueue).
class SimDevice final : public Device {
 public:
  SimDevice(int number, const std::optional<DeviceLimits>& limits,
            uint64_t seed)
      : Device(DeviceKind::kSim, /*apart=*/true, limits),
        number_(number),
        seed_(seed) {}

  absl::StatusOr<std::unique_ptr<DeviceQueue>> NewQueue() override {
    return SimQueue::Create(number_, seed_);
  }

 private:
  const int number_;
  const uint64_t seed_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_SIM_SIM_DEVICE_H_
