#ifndef TIERCEL_OFFLOAD_MOVE_LINK_H_
#define TIERCEL_OFFLOAD_MOVE_LINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/machine/clock.h"
#include "offload/disk/page_file.h"
#include "offload/move/host_mappings.h"
#include "offload/tier/faults.h"
#include "offload/tier/host_region.h"
#include "offload/tier/placement.h"

namespace tiercel {

enum class Direction { kHostToDevice, kDeviceToHost };

// One run of bytes to move between the tiers. The host side is a region and an
// offset, not an address: only a link may know where that is. Or it is a page
// on disk: all of it on its way down, up also a part.
struct Transfer {
  Direction direction = Direction::kHostToDevice;
  const HostRegion* host = nullptr;
  int64_t offset = 0;  // in `host`, or in the page
  std::byte* device = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<PageFile> file = nullptr;  // null: in `host`
  int layer = 0;                             // of the page on disk
  int64_t slot = 0;

  bool ReadsDisk() const {
    return file != nullptr && direction == Direction::kHostToDevice;
  }
  bool IsOfPage(const Transfer& other) const {
    return file == other.file && layer == other.layer && slot == other.slot;
  }
};

// Moves the bytes in fewer transfers: neighbours on both sides become one, as
// far as it then has no more than `most` bytes.
std::vector<Transfer> Joined(
    const std::vector<Transfer>& transfers,
    int64_t most = std::numeric_limits<int64_t>::max());

// What copies between host and device. One thread copies and waits; Mark and
// Forget are called from any.
class Link {
 public:
  explicit Link(Clock& clock = SteadyClock()) : clock_(clock) {}
  virtual ~Link() = default;

  Clock& clock() const { return clock_; }  // of the times below

  struct Moved {
    int64_t bytes;
    double seconds;  // that the link was occupied, latency included
  };
  // What Copy is given next, in this order, until End, which follows Finish;
  // other transfers may come between. It may begin to read them. They stay
  // where they are until End.
  virtual void Begin(const std::vector<Transfer>& /*transfers*/) {}
  virtual void End(const std::vector<Transfer>& /*transfers*/) {}
  // Moves all of `transfer`, asked for at `since`, or less once `drop` is set.
  // It may still be on its way until Finish. Errors: copy_failed;
  // device_failed; out_of_memory.
  virtual absl::StatusOr<Moved> Copy(const Transfer& transfer,
                                     Clock::Time since,
                                     const std::atomic<bool>& drop) = 0;
  // Returns when all that Copy was given has arrived, or will not: the seconds
  // that took. Errors: device_failed, of any copy since the last Finish.
  virtual absl::StatusOr<double> Finish() { return 0.0; }

  // What the device has been given to compute so far, to be waited for. 0 where
  // all of it is done already.
  virtual uint64_t Mark() { return 0; }
  // Returns when the device has computed all that came before `mark`: what that
  // wrote may be copied, and what it read be written over. Errors:
  // device_failed.
  virtual absl::Status Await(uint64_t /*mark*/) { return absl::OkStatus(); }

  // Whether the host tier that it copies from and to has addresses. A played
  // device's has none, so that arithmetic cannot reach it by mistake; a GPU's
  // has, as memory with an address comes in larger pages, which the system
  // finds, and the driver pins, ten times as fast.
  virtual bool HostHasAddresses() const { return false; }

  // Called before `region` ends, when none of its copies is on the way: what is
  // known of it is of no other region.
  virtual void Forget(const HostRegion& region) = 0;

 private:
  Clock& clock_;
};

// The link of a device that is this machine's own: memory is copied, each
// transfer at once.
class HostLink final : public Link {
 public:
  explicit HostLink(std::shared_ptr<Placement> placement = nullptr)
      : mappings_(std::move(placement)) {}

  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override;
  void Forget(const HostRegion& region) override { mappings_.Forget(region); }

 private:
  HostMappings mappings_;
};

// A link of a stated rate and latency in front of one that copies: transfers
// follow each other without a gap when they are asked for early enough, and
// never finish sooner than bytes / rate.
class SimulatedLink final : public Link {
 public:
  // rate in bytes per second (> 0), latency in seconds per transfer.
  SimulatedLink(double rate, double latency,
                std::unique_ptr<Link> copies = std::make_unique<HostLink>(),
                std::shared_ptr<const Faults> faults = nullptr,
                Clock& clock = SteadyClock());

  absl::StatusOr<Moved> Copy(const Transfer& transfer, Clock::Time since,
                             const std::atomic<bool>& drop) override;
  absl::StatusOr<double> Finish() override { return copies_->Finish(); }
  uint64_t Mark() override { return copies_->Mark(); }
  absl::Status Await(uint64_t mark) override { return copies_->Await(mark); }
  bool HostHasAddresses() const override { return copies_->HostHasAddresses(); }
  void Forget(const HostRegion& region) override { copies_->Forget(region); }

 private:
  const double rate_;
  const double latency_;
  const std::unique_ptr<Link> copies_;
  const std::shared_ptr<const Faults> faults_;
  Clock::Time free_at_;
};

}  // namespace tiercel

#endif  // TIERCEL_OFFLOAD_MOVE_LINK_H_
