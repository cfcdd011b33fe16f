#ifndef TIERCEL_OFFLOAD_MOVE_LINK_H_
#define TIERCEL_OFFLOAD_MOVE_LINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/machine/clock.h"
#include "offload/tier/faults.h"
#include "offload/tier/host_region.h"
#include "offload/tier/placement.h"

namespace tiercel {

enum class Direction { kHostToDevice, kDeviceToHost };

// One run of bytes to move between the tiers. The host side is a region and an
// offset, not an address: only a link may know where that is.
struct Transfer {
  Direction direction = Direction::kHostToDevice;
  const HostRegion* host = nullptr;
  int64_t offset = 0;  // in `host`
  std::byte* device = nullptr;
  int64_t bytes = 0;
};

// Moves the bytes in fewer transfers: neighbours on both sides become one, as
// far as it then has no more than `most` bytes.
std::vector<Transfer> Joined(
    const std::vector<Transfer>& transfers,
    int64_t most = std::numeric_limits<int64_t>::max());

// What copies between host and device. Copy is called by one thread.
class Link {
 public:
  explicit Link(Clock& clock = SteadyClock()) : clock_(clock) {}
  virtual ~Link() = default;

  Clock& clock() const { return clock_; }  // of the times below

  struct Moved {
    int64_t bytes;
    double seconds;  // that the link was occupied, latency included
  };
  // Moves all of `transfer`, asked for at `since`, or less once `drop` is set.
  // Errors: copy_failed; out_of_memory.
  virtual absl::StatusOr<Moved> Copy(const Transfer& transfer,
                                     Clock::Time since,
                                     const std::atomic<bool>& drop) = 0;
  // Called from any thread before `region` ends, when none of its copies is on
  // the way: what is known of it is of no other region.
  virtual void Forget(const HostRegion& region) = 0;

 private:
  Clock& clock_;
};

// A link of a stated rate and latency. It really copies, and each copy takes
// the time that the stated link would: transfers follow each other without a
// gap when they are asked for early enough, and never finish sooner than
// bytes / rate.
class SimulatedLink final : public Link {
 public:
  // rate in bytes per second (> 0), latency in seconds per transfer. What it
  // maps of the host tier is put where `placement` (null: anywhere) says.
  SimulatedLink(double rate, double latency,
                std::shared_ptr<Placement> placement,
                std::shared_ptr<const Faults> faults = nullptr,
                Clock& clock = SteadyClock());
  ~SimulatedLink() override;

  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override;
  void Forget(const HostRegion& region) override;

 private:
  // The only mappings of the host tier.
  absl::StatusOr<std::byte*> AddressOf(const HostRegion& region);

  const double rate_;
  const double latency_;
  const std::shared_ptr<Placement> placement_;
  const std::shared_ptr<const Faults> faults_;
  Clock::Time free_at_;
  struct Mapping {
    std::byte* address = nullptr;  // null: not mapped
    size_t bytes = 0;
  };
  std::mutex mutex_;  // of mapped_
  std::map<const HostRegion*, Mapping> mapped_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_LINK_H_
