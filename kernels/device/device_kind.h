#ifndef TIERCEL_KERNELS_DEVICE_DEVICE_KIND_H_
#define TIERCEL_KERNELS_DEVICE_DEVICE_KIND_H_

#include <cstddef>

namespace tiercel {

// The bodies of ops that a device runs (OpBodies).
enum class Bodies {
  kCpu,        // fast bodies; the reference if an op has none
  kReference,  // every op by its plain reference
  kGpu,        // kernels
  kCpuLater,   // the CPU's, done later, in memory that the host cannot touch
};

// The kinds of devices.
enum class DeviceKind { kCpu, kRef, kCuda, kSim };

// Switches, so that the compiler names the kind that one forgets.
constexpr const char* NameOf(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kRef:
      return "ref";
    case DeviceKind::kCuda:
      return "cuda";
    case DeviceKind::kSim:
      return "sim";
  }
  return "";
}
constexpr Bodies BodiesOf(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return Bodies::kCpu;
    case DeviceKind::kRef:
      return Bodies::kReference;
    case DeviceKind::kCuda:
      return Bodies::kGpu;
    case DeviceKind::kSim:
      return Bodies::kCpuLater;
  }
  return Bodies::kReference;
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_DEVICE_KIND_H_
