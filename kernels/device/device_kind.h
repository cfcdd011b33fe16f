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

struct DeviceKindEntry {
  DeviceKind kind;
  const char* name;
  Bodies bodies;
};
inline constexpr DeviceKindEntry kDeviceKinds[] = {
    {DeviceKind::kCpu, "cpu", Bodies::kCpu},
    {DeviceKind::kRef, "ref", Bodies::kReference},
    {DeviceKind::kCuda, "cuda", Bodies::kGpu},
    {DeviceKind::kSim, "sim", Bodies::kCpuLater},
};

constexpr const DeviceKindEntry& EntryOf(DeviceKind kind) {
  return kDeviceKinds[static_cast<size_t>(kind)];
}
constexpr const char* NameOf(DeviceKind kind) { return EntryOf(kind).name; }
constexpr Bodies BodiesOf(DeviceKind kind) { return EntryOf(kind).bodies; }

static_assert([] {
  for (const DeviceKindEntry& entry : kDeviceKinds) {
    if (&EntryOf(entry.kind) != &entry) return false;
  }
  return true;
}());

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_DEVICE_KIND_H_
