#ifndef TIERCEL_KERNELS_DEVICE_CUDA_CUDA_DEVICE_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <optional>
#include <utility>

#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/device.h"
#include "lib/status/status_macros.h"

namespace tiercel {

// A GPU, by its number among those that the process sees.
class CudaDevice final : public Device {
 public:
  CudaDevice(int number, std::optional<DeviceLimits> limits)
      : Device(DeviceKind::kCuda, /*apart=*/true, std::move(limits)),
        number_(number) {}

  absl::Status Find() override {
    if (queue_ != nullptr) return queue_->Check();
    ASSIGN_OR_RETURN(queue_, OpenGpu(number_));
    return absl::OkStatus();
  }
  DeviceQueue* queue() override { return queue_.get(); }
  absl::StatusOr<std::unique_ptr<DeviceQueue>> NewQueue() override {
    return OpenGpu(number_);
  }

 private:
  DeviceMemory& AllMemory() override {
    return queue_ != nullptr ? queue_->memory() : none_;
  }

  const int number_;
  std::unique_ptr<DeviceQueue> queue_;  // null: not found yet
  HeapMemory none_;                     // empty: before the GPU is found
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_CUDA_DEVICE_H_
