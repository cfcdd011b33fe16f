#ifndef TIERCEL_KERNELS_DEVICE_CUDA_CUDA_DEVICE_H_
#define TIERCEL_KERNELS_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <optional>

#include "kernels/device/cuda/cuda_driver.h"
#include "kernels/device/device.h"

namespace tiercel {

// A GPU, by its number among those that the process sees.
class CudaDevice final : public Device {
 public:
  CudaDevice(int number, const std::optional<DeviceLimits>& limits)
      : Device(DeviceKind::kCuda, /*apart=*/true, limits), number_(number) {}

  absl::StatusOr<std::unique_ptr<DeviceQueue>> NewQueue() override {
    return OpenGpu(number_);
  }

 private:
  const int number_;
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_CUDA_CUDA_DEVICE_H_
