#ifndef TIERCEL_OFFLOAD_TIER_FAULTS_H_
#define TIERCEL_OFFLOAD_TIER_FAULTS_H_

#include <cstdint>
#include <functional>

namespace tiercel {

// What a played device, its host tier and its ranks refuse, for tests. Each is
// asked before the thing is done, on the thread that does it; true: it fails as
// the system or the hardware would. Empty: nothing fails but what really does.
struct Faults {
  std::function<bool(int64_t bytes)> allocation;  // of device memory
  std::function<bool(int64_t bytes)> copy;        // over the link
  std::function<bool(int64_t bytes)> pinning;     // of host memory
  std::function<bool(int64_t bytes)> gather;      // what a rank has to give
};

inline bool Fails(const std::function<bool(int64_t)>& fault, int64_t bytes) {
  return fault && fault(bytes);
}

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_FAULTS_H_
