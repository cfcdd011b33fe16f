#ifndef TIERCEL_KERNELS_DEVICE_DEVICE_H_
#define TIERCEL_KERNELS_DEVICE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "kernels/device/device_kind.h"
#include "kernels/device/device_memory.h"
#include "kernels/device/queue.h"

namespace tiercel {

// The speed of the link between host and device.
struct LinkRate {
  double bytes_per_s = 0;
  double latency_s = 0;  // per transfer
};

// The size and the link of a smaller device, which a larger one obeys in order
// to simulate it.
struct DeviceLimits {
  int64_t bytes = 0;
  LinkRate link;
  // The rate at which the host attends to pages that do not cross the link, in
  // bytes of K and V a second; 0: it attends to none.
  double host_bytes_per_s = 0;
};

// The properties of a device that decide where data lies, and how.
struct DeviceTraits {
  DeviceKind kind = DeviceKind::kCpu;
  // Its work is done later, in memory of its own that the host cannot touch and
  // that is no part of the machine's.
  bool apart = false;
  // Its size and its link are stated.
  bool limited = false;

  // It computes in the host tier's memory, so that nothing crosses a link.
  bool in_place() const { return !apart && !limited; }
  // Its times are not a real device's.
  bool simulated() const { return limited || kind == DeviceKind::kSim; }
  // Its ops are kernels, and not the CPU's.
  bool runs_kernels() const { return BodiesOf(kind) == Bodies::kGpu; }
};

// A device that computes: its memory, the queue of its work, its link, and what
// it can do. Not thread-safe, but for the questions about it.
class Device {
 public:
  // This much of a device's memory stays free: a driver gives out whole blocks
  // of 2 MiB, of which a session's arrays waste up to one each, and loads a
  // kernel where it is first launched; libraries take some, and so may the
  // desktop. All of a simulated device's may be used.
  static constexpr int64_t kReserve = int64_t{512} << 20;

  // Makes device `number` of a kind, which Find looks for. Absent limits: all
  // that it has may be used. `sim_seed`: the seed of the delays of a kSim
  // device; 0: its work is done as late as it may be.
  static std::unique_ptr<Device> Make(
      DeviceKind kind, int number = 0,
      const std::optional<DeviceLimits>& limits = {}, uint64_t sim_seed = 0);

  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // ---- What it can do ----

  const DeviceTraits& traits() const { return traits_; }
  DeviceKind kind() const { return traits_.kind; }
  bool in_place() const { return traits_.in_place(); }
  bool apart() const { return traits_.apart; }
  bool limited() const { return traits_.limited; }
  bool simulated() const { return traits_.simulated(); }
  // The stated rate of the link. Absent: there is no link, or its rate is found
  // out by use.
  std::optional<LinkRate> link() const;
  // The stated rate of the host beside it; 0: it takes no share.
  double host_bytes_per_s() const {
    return limited() ? limits_->host_bytes_per_s : 0;
  }

  // ---- Its memory and its work ----

  // Finds the device, or checks that it is still there. Errors: no_device;
  // device_lost.
  absl::Status Find();
  // Finds it, and takes the memory of a simulated device, once. Errors: also
  // out_of_memory.
  absl::Status TakeMemory();
  // The memory that ops compute in; what is not taken yet is empty.
  DeviceMemory& memory();
  // The bytes of its memory that may be used, those that are taken included.
  // Absent: its memory is the machine's.
  std::optional<int64_t> Bytes();

  // The queue of all that it computes. Null: it is not apart, or not found.
  DeviceQueue* queue() { return queue_.get(); }
  // Makes another queue of a device that is apart. Errors: those of Find.
  virtual absl::StatusOr<std::unique_ptr<DeviceQueue>> NewQueue() = 0;

 protected:
  Device(DeviceKind kind, bool apart, const std::optional<DeviceLimits>& limits)
      : traits_{kind, apart, limits.has_value()}, limits_(limits) {}

 private:
  // The memory without limits.
  DeviceMemory& AllMemory();

  const DeviceTraits traits_;
  const std::optional<DeviceLimits> limits_;
  HeapMemory heap_;  // the machine's; unused if the device is apart
  std::unique_ptr<DeviceQueue> queue_;     // null: not apart, or not found
  std::unique_ptr<DeviceMemory> limited_;  // null: no limits, or not taken
};

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_DEVICE_H_
