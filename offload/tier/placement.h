#ifndef TIERCEL_OFFLOAD_TIER_PLACEMENT_H_
#define TIERCEL_OFFLOAD_TIER_PLACEMENT_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "offload/tier/faults.h"

namespace tiercel {

// Where the host tier's memory goes: on the NUMA node nearest the device, and
// held there (pinned), so that copies run at the link's rate. The system may
// refuse either, in containers and under small limits; that costs speed only.
class Placement {
 public:
  explicit Placement(std::shared_ptr<const Faults> faults = nullptr);
  ~Placement();
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  // Asks for `bytes` at `address`, page-aligned and not written yet, to be
  // placed and pinned as they are first written.
  void Apply(void* address, size_t bytes);

  // What was refused, each once.
  std::vector<std::string> warnings() const;

 private:
  struct Topology;

  void Warn(std::string text);

  const std::shared_ptr<const Faults> faults_;
  std::unique_ptr<Topology> topology_;  // null: the system does not tell
  mutable std::mutex mutex_;
  std::set<std::string> warnings_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_TIER_PLACEMENT_H_
