#ifndef TIERCEL_KERNELS_DEVICE_DEVICE_KIND_H_
#define TIERCEL_KERNELS_DEVICE_DEVICE_KIND_H_

namespace tiercel {

// The kinds of devices, by the bodies of their ops.
enum class DeviceKind {
  kCpu,   // fast bodies; the reference if an op has none
  kRef,   // every op by its plain reference
  kCuda,  // a GPU's kernels; the parameters of ops point into its memory
  kSim,   // the CPU's bodies, done later, in memory that the host cannot touch
};
const char* NameOf(DeviceKind kind);

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_DEVICE_KIND_H_
