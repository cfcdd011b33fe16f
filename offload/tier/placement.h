#ifndef TIERCEL_OFFLOAD_TIER_PLACEMENT_H_
#define TIERCEL_OFFLOAD_TIER_PLACEMENT_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kernels/machine/cuda_stream.h"
#include "offload/tier/faults.h"

namespace tiercel {

// Where the host tier's memory goes: on the NUMA node nearest the device, and
// held there (pinned), so that copies run at the link's rate. The system may
// refuse either, in containers and under small limits; that costs speed only.
class Placement {
 public:
  // Near `gpu`, which outlives it; null: near the CPUs that this process may
  // run on.
  explicit Placement(std::shared_ptr<const Faults> faults = nullptr,
                     CudaStream* gpu = nullptr);
  ~Placement();
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  // Asks for `bytes` at `address`, page-aligned and not written yet, to be
  // placed as they are first written, and pinned then where there is no GPU.
  void Apply(void* address, size_t bytes);
  // Pins such bytes for the GPU, now; false: refused.
  bool Pin(std::byte* address, size_t bytes);
  void Unpin(std::byte* address);

  // What was refused, each once.
  std::vector<std::string> warnings() const;

 private:
  struct Topology;

  void Warn(std::string text);

  // Whether a test refuses it.
  bool IsRefused(size_t bytes);

  const std::shared_ptr<const Faults> faults_;
  CudaStream* const gpu_;
  std::unique_ptr<Topology> topology_;  // null: the system does not tell
  mutable std::mutex mutex_;
  std::set<std::string> warnings_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_PLACEMENT_H_
