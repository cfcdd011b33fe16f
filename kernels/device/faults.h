#ifndef TIERCEL_KERNELS_DEVICE_FAULTS_H_
#define TIERCEL_KERNELS_DEVICE_FAULTS_H_

#include <cstdint>
#include <functional>

namespace tiercel {

// Faults that tests inject into a simulated device, its host tier and its
// ranks. Each function is called before the operation, on the thread that does
// it; if it returns true the operation fails as the system or the hardware
// would fail it. An empty function injects nothing.
struct Faults {
  std::function<bool(int64_t bytes)> allocation;  // device memory
  std::function<bool(int64_t bytes)> copy;        // a copy over the link
  std::function<bool(int64_t bytes)> pinning;     // pinned host memory
  std::function<bool(int64_t bytes)> gather;      // a rank's part of a gather
};

inline bool Fails(const std::function<bool(int64_t)>& fault, int64_t bytes) {
  return fault && fault(bytes);
}

}  // namespace tiercel

#endif  // TIERCEL_KERNELS_DEVICE_FAULTS_H_
