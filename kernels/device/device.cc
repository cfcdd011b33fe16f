#include "kernels/device/device.h"

#include <algorithm>

#include "kernels/device/cpu/cpu_device.h"
#include "kernels/device/cuda/cuda_device.h"
#include "kernels/device/sim/bounded_memory.h"
#include "kernels/device/sim/sim_device.h"
#include "lib/status/status_macros.h"

namespace tiercel {

std::unique_ptr<Device> Device::Make(DeviceKind kind, int number,
                                     const std::optional<DeviceLimits>& limits,
                                     uint64_t sim_seed) {
  switch (kind) {
    case DeviceKind::kCpu:
    case DeviceKind::kRef:
      break;
    case DeviceKind::kCuda:
      return std::make_unique<CudaDevice>(number, limits);
    case DeviceKind::kSim:
      return std::make_unique<SimDevice>(number, limits, sim_seed);
  }
  return std::make_unique<CpuDevice>(kind, limits);
}

std::optional<LinkRate> Device::link() const {
  if (!limited()) return std::nullopt;
  return limits_->link;
}

absl::Status Device::Find() {
  if (!apart()) return absl::OkStatus();
  if (queue_ != nullptr) return queue_->Check();
  ASSIGN_OR_RETURN(queue_, NewQueue());
  return absl::OkStatus();
}

DeviceMemory& Device::AllMemory() {
  if (queue_ == nullptr) return heap_;
  return queue_->memory();
}

absl::Status Device::TakeMemory() {
  RETURN_IF_ERROR(Find());
  if (!limited() || limited_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      limited_,
      BoundedMemory::Create(limits_->bytes, apart() ? &AllMemory() : nullptr));
  return absl::OkStatus();
}

DeviceMemory& Device::memory() {
  return limited_ != nullptr ? *limited_ : AllMemory();
}

std::optional<int64_t> Device::Bytes() {
  if (limited()) return limits_->bytes;
  if (queue_ == nullptr) return std::nullopt;
  const int64_t reserve = simulated() ? 0 : kReserve;
  return std::max<int64_t>(0, queue_->FreeBytes() - reserve) + memory().used();
}

}  // namespace tiercel
