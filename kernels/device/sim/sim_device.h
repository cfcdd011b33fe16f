#ifndef TIERCEL_KERNELS_DEVICE_SIM_SIM_DEVICE_H_
#define TIERCEL_KERNELS_DEVICE_SIM_SIM_DEVICE_H_

#include <memory>
#include <optional>
#include <utility>

#include "kernels/device/device.h"
#include "kernels/device/sim/sim_memory.h"
#include "kernels/device/sim/sim_queue.h"
#include "lib/status/status_macros.h"

namespace tiercel {

// A device that pretends to be a GPU: the CPU's bodies do its work late, in
// memory that the host cannot touch (SimQueue).
class SimDevice final : public Device {
 public:
  SimDevice(int number, std::optional<DeviceLimits> limits, uint64_t seed)
      : Device(DeviceKind::kSim, /*apart=*/true, std::move(limits)),
        number_(number),
        seed_(seed) {}

  absl::Status Find() override {
    if (queue_ != nullptr) return queue_->Check();
    ASSIGN_OR_RETURN(queue_, SimQueue::Create(number_, seed_));
    return absl::OkStatus();
  }
  DeviceQueue* queue() override { return queue_.get(); }
  absl::StatusOr<std::unique_ptr<DeviceQueue>> NewQueue() override {
    return SimQueue::Create(number_, seed_);
  }

 private:
  DeviceMemory& AllMemory() override { return SimQueue::MemoryOf(number_); }

  const int number_;
  const uint64_t seed_;
  std::unique_ptr<SimQueue> queue_;  // null: not found yet
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_SIM_SIM_DEVICE_H_
